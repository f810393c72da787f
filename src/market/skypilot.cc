// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>
#include <map>
#include <utility>

#include "base/result.h"
#include "base/text/csv.h"
#include "base/text/number.h"
#include "market/catalog.h"

namespace tw::market {
namespace {

constexpr CsvRange kPrice{.least = 0, .most = 1e5};

/// A row of vms.csv.
struct Machine {
  std::string file;
  int line = 0;
  std::string type;
  std::string gpu;
  double gpus = 0;
  double gpu_memory_gib = 0;
  double vcpus = 0;
  double memory_gib = 0;
  double usd_per_h = 0;       ///< 0: not for sale on demand
  double spot_usd_per_h = 0;  ///< 0: not for sale as spot
  std::string region;
  std::string zone;
  std::int64_t as_of_unix_s = 0;
};

/// The number after a key of a Python or JSON literal; 0 if there is none.
double number_in(std::string_view literal, std::string_view key) {
  const auto place = literal.find(key);
  if (place == std::string_view::npos) return 0;
  literal.remove_prefix(place + key.size());
  const auto begin = literal.find_first_not_of("'\": ");
  if (begin == std::string_view::npos) return 0;
  literal.remove_prefix(begin);
  return parse_number<double>(literal.substr(0, literal.find_first_not_of("0123456789."))).value_or(0);
}

/// GpuInfo is a literal with the size of a GPU, or only the GPU's name. Some clouds write GiB although the
/// key says MiB, and Vast gives the size of all GPUs together.
double gpu_memory_gib(const std::string& info, const std::string& cloud, double gpus) {
  constexpr double kLeastMib = 1024;
  const double size = number_in(info, "SizeInMiB");
  const double gib = size < kLeastMib ? size : size / 1024;
  return cloud == "vast" && gpus > 1 ? gib / gpus : gib;
}

Machine read_machine(CsvRow& row, const std::string& cloud, const CatalogFile& file) {
  Machine machine{.file = file.name,
                  .line = row.line(),
                  .type = row.text("InstanceType"),
                  .gpu = row.text("AcceleratorName"),
                  .vcpus = row.number_or("vCPUs", 0, {.least = 0}),
                  .memory_gib = row.number_or("MemoryGiB", 0, {.least = 0}),
                  .usd_per_h = row.number_or("Price", 0, kPrice),
                  .spot_usd_per_h = row.number_or("SpotPrice", 0, kPrice),
                  .region = row.text("Region"),
                  .zone = row.text("AvailabilityZone"),
                  .as_of_unix_s = file.as_of_unix_s};
  if (!machine.gpu.empty()) machine.gpus = row.number("AcceleratorCount", {.least = 0.001, .most = 1024});
  if (machine.gpu.empty() && machine.type.empty())
    row.complain("InstanceType", "a VM type or an AcceleratorName");
  // Some rows of IBM have only a zone: jp-tok-2 lies in jp-tok.
  if (machine.region.empty()) machine.region = machine.zone.substr(0, machine.zone.rfind('-'));
  if (machine.region.empty()) row.complain("Region", "a region");
  machine.gpu_memory_gib = gpu_memory_gib(row.text("GpuInfo"), cloud, machine.gpus);
  return machine;
}

/// GCP: machine types that contain a GPU without naming it. GPUs are attached to N1: eight vCPUs for each, as
/// the VLDB paper rented them, within N1's limits. Empty: no rule for this GPU.
std::string gcp_host(const std::string& gpu, int gpus) {
  const auto sized = [&](const char* form) { return fmt::format(fmt::runtime(form), gpus); };
  if (gpu == "A100") return gpus == 16 ? "a2-megagpu-16g" : sized("a2-highgpu-{}g");
  if (gpu == "A100-80GB") return sized("a2-ultragpu-{}g");
  if (gpu == "H100") return sized("a3-highgpu-{}g");
  if (gpu == "H100-MEGA") return sized("a3-megagpu-{}g");
  if (gpu == "H200") return sized("a3-ultragpu-{}g");
  if (gpu == "B200") return sized("a4-highgpu-{}g");
  if (gpu == "L4") return fmt::format("g2-standard-{}", gpus == 1 ? 8 : 12 * gpus);
  if (gpu == "RTXPRO6000") return fmt::format("g4-standard-{}", 48 * gpus);
  const bool attached = gpu == "T4" || gpu == "P4" || gpu == "P100" || gpu == "V100" || gpu == "K80";
  return attached ? fmt::format("n1-standard-{}", 8 * gpus) : "";
}

class Reader {
 public:
  explicit Reader(const std::string& cloud) : cloud_(site_at(cloud, "").provider) {}

  Status read(const CatalogFile& file) {
    TW_TRY(const auto table,
           CsvTable::parse(file.name, file.text,
                           {"Region", "Price", "InstanceType", "AcceleratorName", "AcceleratorCount"}));
    for (std::size_t i = 0; i < table.size(); ++i) {
      CsvRow row = table.row(i);
      machines_.push_back(read_machine(row, cloud_, file));
      if (!row.status()) return row.status();
    }
    return Unit{};
  }

  CatalogOffers offers() {
    result_.rows = static_cast<int>(machines_.size());
    for (const Machine& machine : machines_)
      if (is_host(machine)) hosts_[{machine.type, machine.zone}] = &machine;
    for (const Machine& machine : machines_) {
      if (machine.gpu.starts_with("tpu")) {
        leave_out(machine, "a TPU");
      } else if (cloud_ == "gcp" && machine.type.empty()) {
        add_with_host(machine);
      } else {
        add(machine, is_host(machine));
      }
    }
    return std::move(result_);
  }

 private:
  bool is_host(const Machine& machine) const { return cloud_ == "gcp" && machine.gpu.empty(); }

  void leave_out(const Machine& machine, const std::string& why) {
    result_.left_out.push_back(fmt::format("{}:{}: {}", machine.file, machine.line, why));
  }

  /// Hosts of GPUs (a2 to a4, g2) are not for sale without them.
  static bool carries_gpu(const Machine& machine) {
    return machine.type.starts_with("a2-") || machine.type.starts_with("a3-") ||
           machine.type.starts_with("a4-") || machine.type.starts_with("g2-") ||
           machine.type.starts_with("g4-");
  }

  void add(const Machine& machine, bool host) {
    if (host) ++result_.hosts;
    if (host && carries_gpu(machine)) return;
    if (machine.usd_per_h == 0 && machine.spot_usd_per_h == 0) {
      if (!host) leave_out(machine, "no price");
      return;
    }
    if (machine.usd_per_h > 0) add_offer(machine, Purchase::on_demand, machine.usd_per_h);
    if (machine.spot_usd_per_h > 0) add_offer(machine, Purchase::spot, machine.spot_usd_per_h);
  }

  void add_with_host(Machine gpu) {
    const std::string type = gcp_host(gpu.gpu, static_cast<int>(std::lround(gpu.gpus)));
    auto host = hosts_.find({type, gpu.zone});
    if (host == hosts_.end() && type == "a3-highgpu-8g") host = hosts_.find({"a3-edgegpu-8g", gpu.zone});
    if (type.empty()) return leave_out(gpu, fmt::format("no machine type is known that carries {}", gpu.gpu));
    if (host == hosts_.end())
      return leave_out(gpu, fmt::format("{} {} needs {}, which {} does not list", csv_number(gpu.gpus),
                                        gpu.gpu, type, gpu.zone));
    const Machine& carrier = *host->second;
    // The price of a B200 includes its machine, which is listed at 0.
    const bool held = carrier.usd_per_h == 0;
    gpu.usd_per_h = gpu.usd_per_h > 0 ? gpu.usd_per_h + carrier.usd_per_h : 0;
    const bool spot = gpu.spot_usd_per_h > 0 && (held || carrier.spot_usd_per_h > 0);
    gpu.spot_usd_per_h = spot ? gpu.spot_usd_per_h + carrier.spot_usd_per_h : 0;
    gpu.type = carrier.type;
    gpu.vcpus = carrier.vcpus;
    gpu.memory_gib = carrier.memory_gib;
    add(gpu, false);
  }

  void add_offer(const Machine& machine, Purchase purchase, double usd_per_h) {
    Offer offer{.provider = cloud_,
                .region = machine.region,
                .zone = machine.zone,
                .vm_type = machine.type,
                .gpu = machine.gpu,
                .gpus = machine.gpus,
                .gpu_memory_gib = machine.gpu_memory_gib,
                .memory_gib = machine.memory_gib,
                .vcpus = machine.vcpus,
                .purchase = purchase,
                .usd_per_h = usd_per_h,
                .source = machine.file,
                .as_of_unix_s = machine.as_of_unix_s};
    fill_in(offer);
    result_.offers.push_back(std::move(offer));
  }

  std::string cloud_;
  std::vector<Machine> machines_;
  std::map<std::pair<std::string, std::string>, const Machine*> hosts_;  ///< by type and zone
  CatalogOffers result_;
};

}  // namespace

Result<CatalogOffers> read_skypilot(const std::string& cloud, const std::vector<CatalogFile>& files) {
  Reader reader(cloud);
  for (const CatalogFile& file : files) TW_TRY(reader.read(file));
  return reader.offers();
}

}  // namespace tw::market
