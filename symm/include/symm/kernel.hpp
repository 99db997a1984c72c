#pragma once
/// \file
/// For the file of a kernel of your own: threads, packs, packets, mailboxes, barriers, and where
/// peers' buffers are (symm/collectives/README.md has the table). These headers also compile with
/// the explorer.

#include "common/simt/pack.hpp"
#include "common/simt/thread_block.hpp"
#include "common/simt/waiter.hpp"
#include "common/simt/warp.hpp"
#include "labs/05_device_prims/abort_barrier.hpp"
#include "labs/05_device_prims/barrier.hpp"
#include "labs/05_device_prims/reduction/elements.hpp"
#include "labs/05_device_prims/reduction/reduction.hpp"
#include "labs/06_allreduce/algorithms/mailbox/mailbox.hpp"
#include "labs/06_allreduce/algorithms/mailbox/packets.hpp"
#include "labs/06_allreduce/algorithms/mailbox/sentinel_packs.hpp"
#include "labs/06_allreduce/algorithms/turns/turns.hpp"
#include "labs/06_allreduce/algorithms/two_shot/rendezvous.hpp"
