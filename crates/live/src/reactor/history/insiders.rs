//! Clients of a history that send messages through the disk's handle, as FUSE and ublk do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use iosched::IoPriority;
use iosched_check::Random;

use super::super::handle::{Inbox, Message};
use super::witness::{Ask, Witness};
use crate::Pool;
use crate::disk::{Action, ClientId, Identity, Operation, SyncWrites};

/// Maximum number of operations at the same time.
const ASKS_MAX: usize = 12;

/// An answer: the key of the operation, and data or an error number.
type Answer = (u64, Result<Vec<u8>, u32>);

/// Results from the disk's thread.
#[derive(Default)]
struct Back {
    clients: Vec<ClientId>,
    answers: Vec<Answer>,
}

pub(super) struct Insiders {
    inbox: Arc<Inbox>,
    pool: Pool,
    back: Arc<Mutex<Back>>,
    asks: BTreeMap<u64, (ClientId, Ask)>,
    /// Operations of disconnected clients.
    lost: BTreeSet<u64>,
    keys: u64,
}

impl Insiders {
    pub(super) fn new(inbox: Arc<Inbox>, pool: Pool) -> Self {
        let (asks, lost) = (BTreeMap::new(), BTreeSet::new());
        Self { inbox, pool, back: Arc::default(), asks, lost, keys: 0 }
    }

    fn tell(&self, message: Message) {
        // A disk that has ended takes no messages.
        let _ = self.inbox.send(message);
    }

    pub(super) fn waits(&self) -> usize {
        self.asks.len()
    }

    fn connect(&self, random: &mut Random) {
        let back = Arc::clone(&self.back);
        let ioprio = random.pick(&["rt/1", "be/0", "be/4", "idle"]).parse().unwrap_or(IoPriority::default());
        let group = random.pick(&[None, Some("a"), Some("inside")]).map(str::to_owned);
        let sync = random.pick(&[SyncWrites::Fua, SyncWrites::All]);
        let identity = Identity { ioprio, group, sync, ..Identity::new("inside", 7) };
        self.tell(Message::Control(Box::new(move |disk, now| {
            let client = disk.connect(now, identity);
            back.lock().unwrap_or_else(PoisonError::into_inner).clients.extend(client);
        })));
    }

    fn disconnect(&mut self, client: ClientId, witness: &mut Witness) {
        self.back.lock().unwrap_or_else(PoisonError::into_inner).clients.retain(|&other| other != client);
        let (gone, rest) = std::mem::take(&mut self.asks).into_iter().partition(|(_, (asker, _))| *asker == client);
        self.asks = rest;
        let gone: BTreeMap<u64, (ClientId, Ask)> = gone;
        for (key, (_, ask)) in gone {
            witness.lost(&ask);
            self.lost.insert(key);
        }
        self.tell(Message::Control(Box::new(move |disk, now| disk.disconnect(now, client))));
    }

    /// Makes one of the clients act.
    pub(super) fn act(&mut self, random: &mut Random, witness: &mut Witness) {
        let clients = self.back.lock().unwrap_or_else(PoisonError::into_inner).clients.clone();
        if clients.is_empty() || (clients.len() < 3 && random.chance(5)) {
            return self.connect(random);
        }
        let client = random.pick(&clients);
        if random.chance(3) {
            return self.disconnect(client, witness);
        }
        if self.asks.len() < ASKS_MAX {
            self.submit(client, random, witness);
        }
    }

    fn submit(&mut self, client: ClientId, random: &mut Random, witness: &mut Witness) {
        let ask = witness.ask(random, false);
        let data = (ask.action == Action::Write).then(|| {
            let mut data = self.pool.buffer(ask.length as usize);
            data.copy_from_slice(&ask.data());
            data
        });
        let fua = witness.tells_fua(&ask);
        let Ask { action, offset, length, no_hole, .. } = ask;
        self.keys += 1;
        let (key, back) = (self.keys, Arc::clone(&self.back));
        self.asks.insert(key, (client, ask));
        let operation = Operation { fua, no_hole, data, ..Operation::new(action, offset, length.into()) };
        let reply = Box::new(move |result: Result<Option<crate::Buffer>, crate::Errno>| {
            let result = result.map(|data| data.map(|data| data.to_vec()).unwrap_or_default());
            let answer = (key, result.map_err(|errno| errno.0.unsigned_abs()));
            back.lock().unwrap_or_else(PoisonError::into_inner).answers.push(answer);
        });
        self.tell(Message::Submit(client, operation, reply));
    }

    /// Processes the answers.
    pub(super) fn hear(&mut self, witness: &mut Witness) {
        let answers = std::mem::take(&mut self.back.lock().unwrap_or_else(PoisonError::into_inner).answers);
        for (key, result) in answers {
            match self.asks.remove(&key) {
                Some((_, ask)) => witness.answer(&ask, result.as_deref().map_err(|&errno| errno)),
                None if self.lost.remove(&key) => {}
                None => witness.is_wrong(|| format!("operation {key} is answered twice")),
            }
        }
    }
}
