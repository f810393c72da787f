// SPDX-License-Identifier: Apache-2.0
//
// Digits with libtorch, as one peer of a run: kill any of the peers and the others go on.
//
//   train MNIST_FOLDER [KEY=VALUE ...]
//   tw run --peers 2 -- ./train ../../data-cache/mnist training.rounds=60
//
// The settings are those of docs/run_file.md; `tw run` gives the others through TRADEWIND_*.
// Exit code: 0 when the run is complete, 75 when this peer left on a notice and may come back, 2 when nothing
// is left of the run, 1 else.
#include <torch/torch.h>
#include <tradewind.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::uint64_t kBatch = 64;
constexpr std::uint64_t kEvaluatedEvery = 20;  // rounds

struct Digits : torch::nn::Module {
  Digits() {
    namespace nn = torch::nn;
    layers = register_module("layers",
                             nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 16, 5).stride(2)), nn::ReLU(),
                                            nn::Conv2d(nn::Conv2dOptions(16, 32, 3).stride(2)), nn::ReLU(),
                                            nn::Flatten(), nn::Linear(800, 10)));
  }

  torch::Tensor forward(const torch::Tensor& pictures) { return layers->forward(pictures); }

  torch::nn::Sequential layers{nullptr};
};

struct Data {
  torch::Tensor pictures;  // [count, 1, 28, 28], from 0 to 1
  torch::Tensor targets;   // [count]
};

Data read_data(const std::string& folder, bool train, torch::Device device) {
  using Mnist = torch::data::datasets::MNIST;
  const Mnist mnist(folder, train ? Mnist::Mode::kTrain : Mnist::Mode::kTest);
  return {mnist.images().to(device), mnist.targets().to(device)};
}

int checked(int status) {
  if (status < 0) throw std::runtime_error(tw_last_error());
  return status;
}

/// Values of a tensor in host memory, as the engine reads them. `kept` owns them.
tw_tensor as_values(const torch::Tensor& tensor, std::vector<torch::Tensor>& kept) {
  const auto count = static_cast<std::uint64_t>(tensor.defined() ? tensor.numel() : 0);
  if (count == 0) return {nullptr, 0, TW_FLOAT32, 0};
  kept.push_back(tensor.detach().to(torch::kCPU, torch::kFloat32).contiguous());
  return {kept.back().data_ptr<float>(), count, TW_FLOAT32, 0};
}

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
volatile std::sig_atomic_t arrived[32];  // signals, by number

/// One peer that trains `model`. Everything runs on the thread that made it.
class Peer {
 public:
  Peer(const Digits& model, const std::vector<tw_setting>& settings) : parameters_(model.parameters()) {
    std::vector<std::uint64_t> sizes;
    for (const torch::Tensor& p : parameters_) sizes.push_back(static_cast<std::uint64_t>(p.numel()));
    tw_group group{};
    group.tensors = sizes.size();
    group.learning_rate = 5e-3;
    group.weight_decay = 0.01;
    group.beta1 = 0.9;
    group.beta2 = 0.999;
    group.epsilon = 1e-8;
    group.kind = TW_ADAMW;  // the engine's; TW_CALLER for an optimizer of the program's own
    tw_model shape{};
    shape.groups = &group;
    shape.group_count = 1;
    shape.tensor_sizes = sizes.data();
    shape.tensor_count = sizes.size();
    shape.layout = "digits";  // peers with another one are refused
    tw_calls calls{};
    calls.user = this;
    calls.load = [](void* self, std::uint64_t, int) { return static_cast<Peer*>(self)->load(); };
    checked(tw_open(settings.data(), settings.size(), &shape, &calls, &peer_));
  }

  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  ~Peer() {
    tw_close(peer_);
    tw_release(memory_);
  }

  /// Joins or starts the run; false: this machine has a notice already.
  bool start() {
    std::vector<torch::Tensor> kept;
    std::vector<tw_tensor> initial;
    for (const torch::Tensor& p : parameters_) initial.push_back(as_values(p, kept));
    const int status = tw_start(peer_, initial.data(), initial.size());
    if (status == TW_CONDEMNED) return false;
    checked(status);
    std::uint64_t count = 0;
    memory_ = tw_vector(peer_, 0, &values_, &count);
    load();
    return true;
  }

  /// The next samples to compute; false: the run is over, or this peer has left.
  bool next(tw_order& order) {
    for (;;) {
      const int status = checked(tw_next(peer_, 100, &order));
      for (const int signal : kSignals)
        while (arrived[signal] > 0) {
          arrived[signal] = arrived[signal] - 1;
          tw_signal(peer_, signal);
        }
      if (status == TW_GRADIENT) return true;
      if (status == TW_FINISHED) return false;
    }
  }

  /// Indices of the order's first `count` samples in the data set.
  torch::Tensor samples(std::uint64_t dataset_size, std::uint64_t count) {
    auto indices = torch::empty({static_cast<std::int64_t>(count)}, torch::kInt64);
    const tw_dataset data{dataset_size, 1, 0};
    checked(tw_samples(peer_, &data, indices.data_ptr<std::int64_t>(), count));
    return indices;
  }

  /// Hands in the gradients of a mean loss over `count` samples.
  void done(std::uint64_t count, double loss) {
    std::vector<torch::Tensor> kept;
    std::vector<tw_tensor> gradients;
    for (const torch::Tensor& p : parameters_) {
      gradients.push_back(as_values(p.grad(), kept));
      gradients.back().count = static_cast<std::uint64_t>(p.numel());
    }
    tw_gradient handed{};
    handed.gradients = gradients.data();
    handed.gradient_count = gradients.size();
    handed.weight = static_cast<double>(count);
    handed.samples = count;
    handed.had = kBatch;
    handed.loss_sum = loss * static_cast<double>(count);
    checked(tw_done(peer_, &handed));
  }

  /// The others do this peer's part while it evaluates, saves or waits.
  void busy(const char* why) { checked(tw_busy(peer_, why)); }

  /// Whether the view has this field, as it is written: "\"first\":true" (tradewind.h).
  bool is(const char* field) const {
    char* const view = tw_view(peer_);
    const bool found = std::strstr(view, field) != nullptr;
    tw_free(view);
    return found;
  }

 private:
  /// The parameters after a round, or those of the run that it joins, go into the model.
  int load() {
    const torch::NoGradGuard none;
    float* at = values_;
    for (torch::Tensor& p : parameters_) {
      if (at == nullptr) return 0;  // start() loads those of the beginning
      p.copy_(torch::from_blob(at, p.sizes()));
      at += p.numel();
    }
    return 0;
  }

  std::vector<torch::Tensor> parameters_;
  tw_peer* peer_ = nullptr;
  tw_memory* memory_ = nullptr;
  float* values_ = nullptr;
};

/// Share of the test pictures that the model recognises.
double accuracy(Digits& model, const Data& test) {
  const torch::NoGradGuard none;
  return (model.forward(test.pictures).argmax(1) == test.targets).to(torch::kFloat32).mean().item<double>();
}

int train(const std::string& folder, const std::vector<tw_setting>& settings) {
  const torch::Device device(torch::cuda::is_available() ? torch::kCUDA : torch::kCPU);
  torch::manual_seed(1);
  Digits model;
  model.to(device);
  const Data data = read_data(folder, true, device), test = read_data(folder, false, device);
  Peer peer(model, settings);
  if (!peer.start()) return 75;
  std::uint64_t evaluated = 0;
  for (tw_order order; peer.next(order);) {
    if (order.round % kEvaluatedEvery == 0 && order.round != evaluated && peer.is("\"first\":true")) {
      evaluated = order.round;
      peer.busy("evaluating");
      std::printf("round %lu: %.2f %% right\n", order.round - 1, 100 * accuracy(model, test));
      std::fflush(stdout);
      peer.busy(nullptr);
      continue;  // the order is with the others by now
    }
    const std::uint64_t count = std::min(order.samples, kBatch);
    const auto rows = peer.samples(static_cast<std::uint64_t>(data.targets.size(0)), count).to(device);
    model.zero_grad();
    const auto loss = torch::nn::functional::cross_entropy(model.forward(data.pictures.index_select(0, rows)),
                                                           data.targets.index_select(0, rows));
    loss.backward();
    peer.done(count, loss.item<double>());
  }
  std::printf("at the end: %.2f %% right\n", 100 * accuracy(model, test));
  if (peer.is("\"ending\":\"notice\"")) return 75;
  if (peer.is("\"ending\":\"lost\"")) return 2;  // nothing is left of the run
  if (!peer.is("\"ending\":\"complete\"")) return 1;
  if (!peer.is("\"differs\":\"\"")) return 2;  // other peers have other parameters
  return peer.is("\"unsaved\":\"\"") ? 0 : 1;
}

}  // namespace

int main(int count, char** words) {
  if (count < 2) return std::fprintf(stderr, "usage: train MNIST_FOLDER [KEY=VALUE ...]\n"), 2;
  std::map<std::string, std::string> given{{"training.target_batch_size", "512"}, {"training.rounds", "120"}};
  for (int i = 2; i < count; ++i) {
    const std::string word = words[i];
    given[word.substr(0, word.find('='))] = word.substr(std::min(word.find('='), word.size() - 1) + 1);
  }
  std::vector<tw_setting> settings;
  for (const auto& [key, value] : given) settings.push_back({key.c_str(), value.c_str()});
  for (const int number : kSignals)
    if (std::signal(number, [](int came) { arrived[came] = arrived[came] + 1; }) == SIG_IGN)
      std::signal(number, SIG_IGN);  // as nohup wants it
  try {
    return train(words[1], settings);
  } catch (const std::exception& error) {
    return std::fprintf(stderr, "train: %s\n", error.what()), 1;
  }
}
