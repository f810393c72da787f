// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "host/store/s3_place.h"
#include "world/http.h"

/// How an object is asked for over HTTP, and in whose name. Pure.
/// GS_REGION and AZURE_REGION say where the data lie: prices depend on it, nothing else does.
///   http://, https://            as it stands
///   s3://BUCKET/KEY              s3_place()
///   gs://BUCKET/KEY              the XML interface of Google Cloud Storage with HMAC keys: GS_ACCESS_KEY_ID
///   and
///                                GS_SECRET_ACCESS_KEY, GS_ENDPOINT_URL for another server
///   az://ACCOUNT/CONTAINER/BLOB  Azure Blob Storage with a signature in the URL: AZURE_STORAGE_SAS_TOKEN,
///                                AZURE_STORAGE_ENDPOINT for another server: http://HOST/ACCOUNT or
///                                https://ACCOUNT.HOST
namespace tw::host {

/// world::StoreUses: a store that speaks S3.
std::string store_name(const S3Place& place);

/// It begins with gs://.
bool is_gs(const std::string& url);

/// Place of gs:// objects. Errors say what was expected of the variables.
Result<S3Place> gs_place(const Environment& environment);

/// Whether the object has one of the HTTP schemes.
bool is_http_object(const std::string& object);

struct ObjectPlace {
  S3Target target{};  ///< s3 and gs
  std::string region{};
  std::optional<S3Credentials> credentials{};
  std::string authorities{};  ///< world::HttpRequest
  std::string url{};          ///< the others
  std::string store{};        ///< world::StoreUses
  std::string who{};          ///< for messages; without secrets: "key AKIA..., region us-east-1, HOST"
};

/// Errors name the object and what was expected.
Result<ObjectPlace> object_place(const std::string& object, const Environment& environment,
                                 const AwsFiles& aws_files);

/// GET with these headers.
world::HttpRequest request_for(const ObjectPlace& place, world::HttpHeaders headers, std::int64_t unix_s);

}  // namespace tw::host
