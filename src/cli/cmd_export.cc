// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cli/arguments/export_arguments.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "data/safetensors.h"
#include "host/store/s3_place.h"
#include "host/store/store_files.h"
#include "sync/checkpoint.h"

namespace tw::cli {
namespace {

constexpr std::string_view kSuffix = ".tw";

/// The file that was named, or the newest one of a folder; nothing where it has none.
Result<std::optional<sync::LoadedCheckpoint>> checkpoint_at(world::Files& files, const std::string& given) {
  if (!given.ends_with(kSuffix)) return sync::read_newest_checkpoint(files, given);
  auto loaded = sync::read_checkpoint(files, given);
  if (!loaded) return loaded.error();
  return std::optional(std::move(loaded).value());
}

/// The parameters, which come first in a checkpoint.
std::vector<std::byte> parameters_of(const sync::StateImage& image, std::uint64_t bytes) {
  std::vector<std::byte> values;
  values.reserve(bytes);
  for (const Blob& chunk : image.chunks) {
    const std::size_t count = std::min<std::uint64_t>(chunk.size(), bytes - values.size());
    const auto part = chunk.bytes().first(count);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

/// As safetensors_header says: counts as int64, all others as they are.
std::vector<std::byte> stored(const std::vector<data::TensorShape>& tensors,
                              std::span<const std::byte> parameters) {
  std::vector<std::byte> out;
  for (const data::TensorShape& tensor : tensors) {
    const auto values = parameters.first(tensor.count() * sizeof(float));
    parameters = parameters.subspan(values.size());
    if (tensor.inner) continue;
    if (!tensor.whole) {
      out.insert(out.end(), values.begin(), values.end());
      continue;
    }
    for (std::size_t at = 0; at < values.size(); at += sizeof(float)) {
      float value = 0;
      std::memcpy(&value, values.data() + at, sizeof(float));
      const std::int64_t count = std::llrint(value);
      const auto bytes = std::as_bytes(std::span(&count, 1));
      out.insert(out.end(), bytes.begin(), bytes.end());
    }
  }
  return out;
}

std::uint64_t values_in(const std::vector<data::TensorShape>& tensors) {
  std::uint64_t values = 0;
  for (const data::TensorShape& tensor : tensors) values += tensor.count();
  return values;
}

struct Exported {
  Round round = 0;
  std::uint64_t tensors = 0, values = 0;
};

Result<Exported> write_safetensors(world::Files& files, const sync::LoadedCheckpoint& loaded,
                                   const std::string& from, const std::string& to) {
  const sync::StateImage& image = loaded.image;
  if (loaded.words.layout.empty())
    return Error{fmt::format("{}: it does not name its tensors; a newer tw wrote those that do", from)};
  auto tensors = data::tensors_in_layout(loaded.words.layout);
  if (!tensors) return Error{fmt::format("{}: {}", from, tensors.error().message)};
  const std::uint64_t values = values_in(tensors.value());
  const std::vector<std::byte> parameters = parameters_of(image, values * sizeof(float));
  if (digest_of(std::span(parameters)) != image.parameters)
    return Error{fmt::format("{}: its tensors ({} values) are not its parameters", from, values)};
  const std::string header = data::safetensors_header(
      tensors.value(), {{"round", std::to_string(image.record.round)}, {"run", to_string(image.record.run)}});
  const std::string part = to + ".part";
  const std::vector<std::byte> content = stored(tensors.value(), parameters);
  const std::vector<std::span<const std::byte>> parts{std::as_bytes(std::span(header)), content};
  Status done = files.write(part, parts);
  if (done) done = files.rename(part, to);
  if (!done) return done.error();
  std::erase_if(tensors.value(), [](const data::TensorShape& tensor) { return tensor.inner; });
  return Exported{image.record.round, tensors.value().size(), values_in(tensors.value())};
}

}  // namespace

void describe_export(CLI::App& app, ExportArguments& arguments) {
  CLI::App* command = app.add_subcommand("export", "Parameters of a checkpoint as a safetensors file");
  command->add_option("CHECKPOINT", arguments.checkpoint, "a file, or a folder: its newest one; also s3://")
      ->required();
  command->add_option("-o,--out", arguments.out, "the file to write")->required();
  command->footer(
      "PyTorch, transformers and others read it: safetensors.torch.load_file(\"model.safetensors\").\n"
      "\nExamples:\n"
      "  tw export checkpoints -o model.safetensors\n"
      "  tw export s3://bucket/run/round-000120-1a2b3c4d.tw -o model.safetensors");
}

int export_model(const ExportArguments& arguments) {
  host::StoreFiles files;
  const std::string& from = arguments.checkpoint;
  const auto loaded = checkpoint_at(files, from);
  if (!loaded) return complain(loaded.error().message, loaded.error().lasting ? kUsage : kFailed);
  if (!loaded.value())
    return complain(fmt::format("{}: expected a checkpoint (round-NNNNNN-*.tw) or a folder of them", from),
                    kUsage);
  for (const std::string& skipped : loaded.value()->skipped) warn("skipped " + skipped);
  const auto exported = write_safetensors(files, *loaded.value(), from, arguments.out);
  if (!exported) return complain(exported.error().message, kFailed);
  print_out("{}: {} tensors with {} values, after round {} ({})\n", arguments.out, exported.value().tensors,
            exported.value().values, exported.value().round, from);
  return kDone;
}

}  // namespace tw::cli
