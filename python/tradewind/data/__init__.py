# SPDX-License-Identifier: Apache-2.0
"""Data sets in shards (docs/data.md): samples in tar files, in folders or object stores, by an index.

    data = tradewind.data.shards("train.twi", fields=("jpg", "cls"), decode=True, image=224)
    for pictures, classes in run.shard(data, batch_size=32): ...      # each sample once an epoch, over all peers

index reads them; order and workers say which samples of any data set a peer reads, and read them.
"""

from ..errors import DataError
from .index import Shards, shards

__all__ = ["DataError", "Shards", "shards"]
