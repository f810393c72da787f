// SPDX-License-Identifier: Apache-2.0
#include "market/offer.h"

namespace tw {

std::string_view to_string(Purchase purchase) {
  switch (purchase) {
    case Purchase::spot:
      return "spot";
    case Purchase::on_demand:
      return "on-demand";
    case Purchase::owned:
      return "owned";
  }
  return "";
}

}  // namespace tw
