//! blk-mq's software queue as something to merge into: the newest few requests of a list by age.

use crate::collections::List;
use crate::env::Env;
use crate::layer::MultiQueueRules;
use crate::request::{Bio, Fifo, MergeSide, RequestId};

/// Requests looked at, as in Linux.
const LOOKS: usize = 8;

/// The newest request of `list` that `bio` goes on from, among the newest few.
pub(crate) fn find_merge(
    list: &List<Fifo>,
    rules: &MultiQueueRules,
    env: &Env,
    bio: &Bio,
) -> Option<(RequestId, MergeSide)> {
    let newest_first = std::iter::successors(list.last(), |&id| env.requests.list_links(id).prev());
    newest_first.take(LOOKS).find_map(|id| rules.joins(env, bio, id).map(|side| (id, side)))
}
