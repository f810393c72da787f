# SPDX-License-Identifier: Apache-2.0
"""Data sets in shards (docs/data.md): samples in tar files, in folders or object stores, by an index.

    data = tradewind.data.shards("train.twi", fields=("jpg", "cls"), decode=True, image=224)
    for pictures, classes in run.shard(data, batch_size=32): ...      # each sample once an epoch, over all peers

index reads them. For any data set, order says which samples a peer reads, workers read them, and samples makes batches of
them, as a DataLoader would.
"""

from ..errors import DataError
from .index import Shards, shards

__all__ = ["DataError", "Shards", "shards"]
