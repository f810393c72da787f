// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "base/result.h"

namespace tw::world {

/// Facts about an object without its content. The version changes whenever the content does (the ETag of a
/// server, size and time of a file).
struct ObjectFacts {
  std::uint64_t bytes = 0;
  std::string version;

  bool operator==(const ObjectFacts&) const = default;
};

/// Some bytes of one version of an object.
struct Extent {
  std::string object;  ///< a path, or a URL: file, http, https, s3, gs, az
  std::uint64_t offset = 0;
  std::uint64_t length = 0;  ///< not 0
  std::string version{};     ///< the object must still have this version; empty: any version
  bool anew = false;         ///< from the store, whatever a cache has

  bool operator==(const Extent&) const = default;
};

/// The object's name without what may be secret in a URL: no query, no user and password.
std::string shown_object(const std::string& object);

/// "s3://bucket/key, bytes 10-19", for messages.
std::string text_of(const Extent& extent);

/// Use of a store, failed requests included.
struct StoreUse {
  std::uint64_t reads = 0, bytes = 0;           ///< requests to read (GET, HEAD), bytes received
  std::uint64_t writes = 0, written_bytes = 0;  ///< requests to write or list (PUT, POST, LIST), bytes sent

  bool operator==(const StoreUse&) const = default;
};

/// By the name that has the store's prices ("s3:us-east-1", "b2"), or by its host.
using StoreUses = std::map<std::string, StoreUse>;

void add(StoreUses& sum, const StoreUses& more);

/// Door to objects that are read in parts, wherever they lie. Errors that may pass are retried before they
/// are reported; an error names object, bytes and answer. Any thread.
class Store {
 public:
  using Read = std::function<void(Result<std::string> bytes)>;
  using Looked = std::function<void(Result<ObjectFacts> facts)>;

  /// Waits for reads under way, or drops them without a call.
  virtual ~Store() = default;

  /// Calls once, with all bytes of the extent or an error: from inside this call or later, on any thread.
  virtual void read(const Extent& extent, Read done) = 0;

  /// The same.
  virtual void look(const std::string& object, Looked done) = 0;

  /// Until now; empty for stores that cost nothing.
  virtual StoreUses uses() const { return {}; }
};

/// Blocking versions of the two. Not on a thread on which the store calls back.
Result<std::string> read_now(Store& store, const Extent& extent);
Result<ObjectFacts> look_now(Store& store, const std::string& object);

}  // namespace tw::world
