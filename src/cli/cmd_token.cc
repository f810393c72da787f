// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "base/result.h"
#include "cli/arguments/credentials.h"
#include "cli/commands.h"
#include "cli/terminal/terminal.h"
#include "host/address.h"
#include "host/identity/authority.h"
#include "host/system/calendar.h"
#include "peer/values.h"

namespace tw::cli {

namespace {

Result<host::Authority::Terms> terms_of(const TokenArguments& arguments) {
  host::Authority::Terms terms;
  TW_TRY(const auto role, parse_role(arguments.role));
  terms.role = role;
  TW_TRY(const auto lifetime, parse_lifetime(arguments.expires));
  terms.from_unix_s = host::now_unix_s();
  terms.expires_unix_s = terms.from_unix_s + lifetime;
  if (arguments.addresses.size() > wire::kMostTokenAddresses)
    return Error{fmt::format("--address: {} of them, a token holds at most {}", arguments.addresses.size(),
                             wire::kMostTokenAddresses)};
  for (const std::string& text : arguments.addresses) {
    auto address = peer::parse_address_option("--address", text);
    if (!address) return address.error();
    if (host::parse_address(text).value().port == 0)
      return Error{fmt::format("--address {}: expected a port that others dial, from 1 to 65535", text)};
    if (text.size() > wire::kMostTokenText) return Error{fmt::format("--address {}: too long", text)};
    terms.addresses.push_back(std::move(address).value());
  }
  return terms;
}

/// `tw token FOLDER > FILE`: the shell made the file, with the usual mode.
void warn_of_open_output() {
  struct stat about {};

  if (::fstat(STDOUT_FILENO, &about) != 0 || !S_ISREG(about.st_mode) || (about.st_mode & 0066) == 0) return;
  complain(
      "warning: the file that this token goes to is open to other users of this machine; chmod 600 it, or "
      "give --out FILE",
      kDone);
}

}  // namespace

void describe_token(CLI::App& app, TokenArguments& arguments) {
  CLI::App* command = app.add_subcommand("token", "Print a token that admits a peer to a run");
  command->add_option("FOLDER", arguments.folder, "folder that tw init made")->required();
  command->add_option("--expires", arguments.expires, "lifetime, such as 30d, 12h or 45m; open links stay")
      ->capture_default_str();
  command->add_option("--role", arguments.role, "peer; anchor: stays to the end; observer: watches only")
      ->capture_default_str();
  command
      ->add_option("--address", arguments.addresses,
                   "HOST:PORT of a peer that the new one dials; may be repeated")
      ->allow_extra_args(false);
  command->add_option("--out", arguments.out, "new file, readable by its owner only; default: stdout");
  command->footer(
      "The token is one line and a secret: it admits any number of machines until it expires. Where others\n"
      "can see the command line, give it in a file (tw run --token @FILE). Its addresses may die with their\n"
      "machines; rendezvous in the run file leads to whoever is alive (docs/launch.md).\n"
      "\nExamples:\n"
      "  tw token myrun --address 10.0.0.5:7000\n"
      "  tw token myrun --address 10.0.0.5:7000 --expires 12h --out token; scp -p token spot-vm:\n"
      "  tw token myrun --role observer --expires 12h --out observer");
}

int token(const TokenArguments& arguments) {
  const auto terms = terms_of(arguments);
  if (!terms) return complain(terms.error().message, kUsage);
  const auto authority = host::Authority::open(arguments.folder);
  if (!authority) return complain(authority.error().message, kUsage);
  const std::string line = to_text(authority.value().issue(terms.value())) + "\n";
  if (arguments.out.empty()) {
    warn_of_open_output();
    print_out_text(line);
    return kDone;
  }
  if (const Status written = host::write_secret_file(arguments.out, line); !written)
    return complain("--out " + arguments.out + ": " + written.error().message, kFailed);
  return kDone;
}

}  // namespace tw::cli
