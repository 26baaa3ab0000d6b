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
    let (begin, end) = (bio.sector, bio.end());
    let mut id = list.last()?;
    for _ in 0..LOOKS {
        // Nearly no request is adjacent, and this test is shorter than the test of the rules.
        let request = &env.requests[id];
        if (request.end() == begin || request.sector == end)
            && let Some(side) = rules.joins(env, bio, id)
        {
            return Some((id, side));
        }
        id = env.requests.list_links(id).prev()?;
    }
    None
}
