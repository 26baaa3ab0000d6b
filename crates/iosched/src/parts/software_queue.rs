//! Merging into blk-mq's software queue: only the newest few requests of a list are tried.

use crate::collections::List;
use crate::env::Env;
use crate::layer::MultiQueueRules;
use crate::request::{Bio, Fifo, MergeSide, RequestId};

/// Number of requests to try, as in Linux.
const LOOKS: usize = 8;

/// Returns the newest request of `list` that `bio` can join, among the newest few.
pub(crate) fn find_merge(
    list: &List<Fifo>,
    rules: &MultiQueueRules,
    env: &Env,
    bio: &Bio,
) -> Option<(RequestId, MergeSide)> {
    let newest_first = std::iter::successors(list.last(), |&id| env.requests.list_links(id).prev());
    newest_first.take(LOOKS).find_map(|id| rules.joins(env, bio, id).map(|side| (id, side)))
}
