// SPDX-License-Identifier: Apache-2.0
// libtradewind.so is all of tw_bind; this file is there because a library needs one.
