//! Elevators written in Python. A callable that creates an elevator can be used instead of the name
//! of an elevator.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use iosched::{
    Build, Elevator, Env, IoPriority, Layer, MultiQueueRules, Op, Registered, Registry, RequestId, Setting, Time,
};
use iosched_lab::Control;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyList, PyString};

use crate::error::{About as _, ArgumentTypeError, PolicyError, usage, wrong};
use crate::trace::op_name;
use crate::values::Setting as Given;
use crate::waiting::interruptible;

/// A queued request, as an elevator in Python sees it.
///
/// The sector and the length are those at the insertion of the request. If a bio joins the request
/// later, `complete` gets the new length.
#[pyclass(frozen, module = "iosched")]
pub(crate) struct Request {
    /// The number of the request, from 0, in the order of insertion.
    #[pyo3(get)]
    number: u64,
    /// First sector, in units of 512 bytes.
    #[pyo3(get)]
    sector: u64,
    /// Length in sectors.
    #[pyo3(get)]
    nr_sectors: u32,
    op: Op,
    /// Whether a process waits for the request.
    #[pyo3(get)]
    sync: bool,
    /// The process of the request.
    #[pyo3(get)]
    pid: u32,
    ioprio: IoPriority,
    /// The time of its allocation, in ns.
    #[pyo3(get)]
    submitted_ns: u64,
    id: RequestId,
}

#[pymethods]
impl Request {
    /// read, write, discard or write_zeroes.
    #[getter]
    fn op(&self) -> &'static str {
        op_name(self.op)
    }

    /// The ioprio, in the words of ionice: none, rt/LEVEL, be/LEVEL or idle.
    #[getter]
    fn ioprio(&self) -> String {
        self.ioprio.to_string()
    }

    fn __repr__(&self) -> String {
        let Self { number, sector, nr_sectors, pid, .. } = self;
        format!("<iosched.Request {number}: {} of {nr_sectors} sectors at {sector} for {pid}>", self.op())
    }
}

impl Request {
    fn of(env: &Env, id: RequestId, number: u64, origin: Time) -> Self {
        let request = &env.requests[id];
        Self {
            number,
            sector: request.sector(),
            nr_sectors: request.nr_sectors(),
            op: request.op(),
            sync: request.is_sync(),
            pid: env.pid(request.context()),
            ioprio: request.ioprio(),
            submitted_ns: request.allocated().since(origin),
            id,
        }
    }
}

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Function that ends a run.
type Stop = Box<dyn Fn() + Send>;

/// The exception that a policy raised, and the function that ends its run.
#[derive(Default)]
struct Failure {
    raised: Mutex<Option<PyErr>>,
    stop: Mutex<Option<Stop>>,
}

impl Failure {
    /// Keeps only the first exception, because later ones are its consequences.
    fn raise(&self, error: PyErr) {
        locked(&self.raised).get_or_insert(error);
        if let Some(stop) = &*locked(&self.stop) {
            stop();
        }
    }
}

/// The Python factory of a policy in a registry, and the object that receives its exception.
struct PolicyFactory {
    factory: Py<PyAny>,
    failure: Arc<Failure>,
}

/// A registry entry. It exists as long as the process, and is reused when no run uses its policy.
#[derive(Clone, Copy)]
struct Place {
    policy: &'static Mutex<Option<PolicyFactory>>,
    build: &'static Build,
}

static FREE: Mutex<Vec<Place>> = Mutex::new(Vec::new());
/// Names of policies. They exist as long as the process.
static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

impl Place {
    fn take() -> Self {
        if let Some(free) = locked(&FREE).pop() {
            return free;
        }
        let policy: &'static Mutex<Option<PolicyFactory>> = Box::leak(Box::default());
        let build = move |env: &Env| -> Box<dyn Elevator> {
            Python::attach(|py| {
                let held =
                    locked(policy).as_ref().map(|policy| (policy.factory.clone_ref(py), Arc::clone(&policy.failure)));
                let Some((factory, failure)) = held else {
                    // Only the code that has set the policy builds the elevator, so the policy is
                    // always present here.
                    return Box::new(Policy::idle(env.now, Arc::default()));
                };
                let mut policy = Policy::idle(env.now, failure);
                if let Err(error) = policy.begin(factory.bind(py)) {
                    policy.failure.raise(error);
                }
                Box::new(policy)
            })
        };
        Self { policy, build: Box::leak(Box::new(build)) }
    }
}

fn name_for_ever(name: &str) -> &'static str {
    let mut names = locked(&NAMES);
    if let Some(known) = names.get(name) {
        return known;
    }
    let leaked: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(leaked);
    leaked
}

/// The elevators of one call: the elevators of Linux, and the policies among the arguments.
#[derive(Default)]
pub(crate) struct Policies {
    registry: Registry,
    given: Vec<(Py<PyAny>, &'static str)>,
    places: Vec<Place>,
    failure: Arc<Failure>,
}

impl Drop for Policies {
    fn drop(&mut self) {
        for place in self.places.drain(..) {
            let policy = locked(place.policy).take();
            drop(policy);
            locked(&FREE).push(place);
        }
    }
}

impl Policies {
    pub(crate) fn registry(&self) -> &Registry {
        &self.registry
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the text of a setting that an earlier call of [`text`](Self::text) received.
    pub(crate) fn known(&self, given: &Bound<'_, PyAny>) -> PyResult<String> {
        match self.given.iter().find(|(known, _)| known.is(given)) {
            Some((_, name)) => Ok((*name).to_owned()),
            None => Self::default().text(given),
        }
    }

    /// Returns the text of an argument, which can be a setting, a text or a policy.
    pub(crate) fn text(&mut self, given: &Bound<'_, PyAny>) -> PyResult<String> {
        if let Ok(setting) = given.cast::<Given>() {
            return Ok(setting.get().0.to_string());
        }
        if let Ok(text) = given.cast::<PyString>() {
            return Ok(text.to_str()?.to_owned());
        }
        if given.is_callable() {
            return self.add(given).map(str::to_owned);
        }
        let class = given.get_type();
        let hint = if given.hasattr("dispatch")? || given.hasattr("batch")? {
            "; every run needs a separate elevator, so give the class, or functools.partial of the class"
        } else {
            ""
        };
        Err(ArgumentTypeError::new_err(format!(
            "a scheduler must be a Setting, a text such as \"cfq:slice_idle=0\" or an elevator class, not {}{hint}",
            class.name()?
        )))
    }

    /// Returns the setting of the argument `given`. `argument` is its name in errors.
    pub(crate) fn setting(&mut self, argument: &str, given: &Bound<'_, PyAny>) -> PyResult<Setting> {
        let text = self.text(given).about(argument)?;
        iosched_lab::request::SettingTarget::Model(&self.registry)
            .parse(&text)
            .map_err(|problem| wrong(argument, format_args!("{text}: {problem}")))
    }

    fn add(&mut self, factory: &Bound<'_, PyAny>) -> PyResult<&'static str> {
        if let Some((_, name)) = self.given.iter().find(|(known, _)| known.is(factory)) {
            return Ok(name);
        }
        let entry = Entry::of(factory)?;
        let place = Place::take();
        let about = "of a Python program";
        let registered = Registered { layer: entry.layer, about, ..Registered::new(entry.name, place.build) };
        if let Err(error) = self.registry.add(registered) {
            locked(&FREE).push(place);
            return Err(usage(format_args!("{error}; change the attribute `name` of the class")));
        }
        *locked(place.policy) =
            Some(PolicyFactory { factory: factory.clone().unbind(), failure: Arc::clone(&self.failure) });
        self.places.push(place);
        self.given.push((factory.clone().unbind(), entry.name));
        Ok(entry.name)
    }

    /// Runs `work` until it ends, Ctrl-C is pressed or a policy raises an exception. `jobs` is the
    /// number of parallel runs. The default is one run per CPU. With policies, the default is one
    /// run, because policies share the GIL.
    pub(crate) fn carry_out<T: Send>(
        &self,
        py: Python<'_>,
        jobs: Option<usize>,
        work: impl FnOnce(&Control) -> T + Send,
    ) -> PyResult<T> {
        let cpus = || std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let control = Arc::new(Control::new(jobs.unwrap_or_else(|| if self.is_empty() { cpus() } else { 1 })));
        let ended = Arc::clone(&control);
        // The first call of `interrupt` ends the work after the current runs. The second call ends
        // these runs.
        let stop = move || (0..2).for_each(|_| ended.interrupt());
        self.begin(stop.clone());
        let done = interruptible(py, || work(&control), stop)?;
        self.ended()?;
        Ok(done)
    }

    /// Forgets earlier exceptions. From now on, an exception calls `stop` to end the run.
    pub(crate) fn begin(&self, stop: impl Fn() + Send + 'static) {
        *locked(&self.failure.raised) = None;
        *locked(&self.failure.stop) = Some(Box::new(stop));
    }

    /// Returns the exception that a policy raised since [`Self::begin`], if any.
    pub(crate) fn ended(&self) -> PyResult<()> {
        *locked(&self.failure.stop) = None;
        locked(&self.failure.raised).take().map_or(Ok(()), Err)
    }
}

/// Name and layer that the class of an elevator declares.
struct Entry {
    name: &'static str,
    layer: Layer,
}

impl Entry {
    fn of(factory: &Bound<'_, PyAny>) -> PyResult<Self> {
        // For `functools.partial`, take the wrapped function.
        let class = factory.getattr_opt("func")?.unwrap_or_else(|| factory.clone());
        let attribute = |name: &str| -> PyResult<Option<Bound<'_, PyAny>>> {
            let value = factory.getattr_opt(name)?.filter(|value| !value.is_none());
            Ok(value.or(class.getattr_opt(name)?.filter(|value| !value.is_none())))
        };
        let name = match attribute("name")? {
            Some(name) => name.extract::<String>()?,
            None => match attribute("__name__")? {
                Some(name) => name.extract::<String>()?.to_lowercase(),
                None => return Err(usage("an elevator needs a name; set the attribute `name` of the class")),
            },
        };
        let multi_queue = attribute("multi_queue")?.is_some_and(|value| value.is_truthy().unwrap_or(false));
        let layer = if multi_queue { Layer::MultiQueue(MultiQueueRules::USUAL) } else { Layer::SingleQueue };
        Ok(Self { name: name_for_ever(&name), layer })
    }
}

/// Interface to the methods of the Python object.
enum Calls {
    /// One call per request.
    Single { insert: Py<PyAny>, dispatch: Py<PyAny> },
    /// One call for all new requests. The call returns the next requests in their order.
    Batch { batch: Py<PyAny> },
    /// The Python object has raised an exception. The remaining requests are dispatched until the
    /// run ends.
    Failed,
}

/// An elevator whose decisions a Python object makes.
struct Policy {
    policy: Option<Py<PyAny>>,
    /// Start of the run, which is time 0 for Python.
    origin: Time,
    calls: Calls,
    complete: Option<Py<PyAny>>,
    /// Requests that the Python object knows and has not dispatched, by slot.
    queued: Vec<Option<Py<Request>>>,
    /// Requests in the device, by slot. Empty if the object has no method `complete`.
    started: Vec<Option<Py<Request>>>,
    /// Requests that the Python object does not know yet.
    arrived: Vec<RequestId>,
    /// Requests that the object has chosen for dispatch. The next request is at the end.
    ready: Vec<RequestId>,
    inserted: u64,
    /// Whether any event has happened since the object had no request to dispatch.
    changed: bool,
    failure: Arc<Failure>,
}

impl Policy {
    /// Creates a policy without a Python object.
    fn idle(origin: Time, failure: Arc<Failure>) -> Self {
        Self {
            policy: None,
            origin,
            calls: Calls::Failed,
            complete: None,
            queued: Vec::new(),
            started: Vec::new(),
            arrived: Vec::new(),
            ready: Vec::new(),
            inserted: 0,
            changed: false,
            failure,
        }
    }

    fn begin(&mut self, factory: &Bound<'_, PyAny>) -> PyResult<()> {
        let policy = factory.call0()?;
        let base = factory.py().import("iosched")?.getattr("Elevator")?;
        // A method that the object inherits from the base class counts as missing.
        let method = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            let is_default = match policy.get_type().getattr_opt(name)? {
                Some(method) => method.is(&base.getattr(name)?),
                None => false,
            };
            let method = if is_default { None } else { policy.getattr_opt(name)? };
            Ok(method.map(Bound::unbind))
        };
        self.calls = match (method("batch")?, method("insert")?, method("dispatch")?) {
            (Some(batch), ..) => Calls::Batch { batch },
            (None, Some(insert), Some(dispatch)) => Calls::Single { insert, dispatch },
            _ => {
                let class = policy.get_type().name()?;
                return Err(usage(format_args!(
                    "{class} is not an elevator; an elevator has the methods insert and dispatch, or batch"
                )));
            }
        };
        self.complete = method("complete")?;
        self.policy = Some(policy.unbind());
        Ok(())
    }

    /// Ends the calls of the object. The run then ends soon.
    fn give_up(&mut self, error: PyErr) {
        self.failure.raise(error);
        self.calls = Calls::Failed;
        self.complete = None;
        self.ready.append(&mut self.arrived);
        self.ready.extend(self.queued.drain(..).flatten().map(|request| request.get().id));
    }

    fn fail(&mut self, py: Python<'_>, now: Time, method: &'static str, problem: &str, cause: Option<PyErr>) {
        let queued: Vec<_> = self.queued.iter().flatten().map(|request| request.clone_ref(py)).collect();
        let policy = self.policy.take();
        let shown = policy.as_ref().map_or_else(String::new, |policy| shown(policy.bind(py)));
        let now_ns = now.since(self.origin);
        let at_ms = now_ns as f64 / 1e6;
        let left = match queued.len() {
            1 => "1 request is queued".to_owned(),
            count => format!("{count} requests are queued"),
        };
        let error = PolicyError::new_err(format!("{shown}: {method} at {at_ms:.6} ms {problem}; {left}"));
        let value = error.value(py);
        let written = value
            .setattr("time_ns", now_ns)
            .and_then(|()| value.setattr("method", method))
            .and_then(|()| value.setattr("queued", queued))
            .and_then(|()| value.setattr("policy", policy));
        error.set_cause(py, cause.or(written.err()));
        self.give_up(error);
    }

    fn raised(&mut self, py: Python<'_>, now: Time, method: &'static str, error: PyErr) {
        if error.is_instance_of::<PyException>(py) {
            let problem = format!("raised {}", shown(error.value(py)));
            self.fail(py, now, method, &problem, Some(error));
        } else {
            // KeyboardInterrupt and SystemExit are not errors of the policy.
            self.give_up(error);
        }
    }

    /// Returns the Python object of a new request, and adds it to the queued requests.
    fn remember(&mut self, py: Python<'_>, env: &Env, id: RequestId) -> PyResult<Py<Request>> {
        let request = Py::new(py, Request::of(env, id, self.inserted, self.origin))?;
        self.inserted += 1;
        put(&mut self.queued, id, request.clone_ref(py));
        Ok(request)
    }

    /// Returns the request in `returned`, if the request is queued.
    fn taken(&mut self, returned: &Bound<'_, PyAny>) -> Result<RequestId, String> {
        let Ok(request) = returned.cast::<Request>() else {
            return Err(format!(
                "returned {}; it must return a queued request, None, or a time in ns at which to ask again",
                shown(returned)
            ));
        };
        let id = request.get().id;
        let slot = self.queued.get_mut(id.index()).filter(|slot| slot.as_ref().is_some_and(|slot| slot.is(request)));
        let Some(taken) = slot.and_then(Option::take) else {
            return Err(format!(
                "returned {}, but this request is not queued, because it was already dispatched or is from another run",
                shown(returned)
            ));
        };
        if self.complete.is_some() {
            put(&mut self.started, id, taken);
        }
        Ok(id)
    }

    /// Adds the requests in `returned` for dispatch, in reverse order, so that the next request is
    /// at the end. A time in `returned` sets the timer.
    fn given(&mut self, env: &mut Env, returned: &Bound<'_, PyAny>) -> PyResult<Result<(), String>> {
        if returned.is_none() {
            return Ok(Ok(()));
        }
        if !returned.is_instance_of::<PyBool>()
            && let Ok(at_ns) = returned.extract::<u64>()
        {
            if at_ns <= env.now.since(self.origin) {
                return Ok(Err(format!("returned {at_ns}, but this time (ns) is not in the future")));
            }
            env.set_timer(Time::from_ns(self.origin.as_ns().saturating_add(at_ns)));
            return Ok(Ok(()));
        }
        if matches!(self.calls, Calls::Single { .. }) {
            return Ok(self.taken(returned).map(|id| self.ready.push(id)));
        }
        let Ok(several) = returned.try_iter() else { return Ok(self.taken(returned).map(|id| self.ready.push(id))) };
        for element in several {
            match self.taken(&element?) {
                Ok(id) => self.ready.push(id),
                Err(problem) => return Ok(Err(problem)),
            }
        }
        self.ready.reverse();
        Ok(Ok(()))
    }

    /// Calls the object, which returns the next requests.
    fn ask(&mut self, py: Python<'_>, env: &mut Env) {
        let now_ns = env.now.since(self.origin);
        let (method, returned) = match &self.calls {
            Calls::Failed => return,
            Calls::Single { dispatch, .. } => ("dispatch", dispatch.bind(py).call1((now_ns,))),
            Calls::Batch { batch } => {
                let batch = batch.clone_ref(py);
                let arrived = std::mem::take(&mut self.arrived);
                let all: PyResult<Vec<_>> = arrived.into_iter().map(|id| self.remember(py, env, id)).collect();
                ("batch", all.and_then(|all| batch.bind(py).call1((now_ns, PyList::new(py, all)?))))
            }
        };
        match returned.and_then(|returned| self.given(env, &returned)) {
            Ok(Ok(())) => {}
            Ok(Err(problem)) => self.fail(py, env.now, method, &problem, None),
            Err(error) => self.raised(py, env.now, method, error),
        }
    }
}

fn shown(object: &Bound<'_, PyAny>) -> String {
    object.repr().map_or_else(|_| "what cannot be shown".to_owned(), |text| text.to_string())
}

fn put(slots: &mut Vec<Option<Py<Request>>>, id: RequestId, request: Py<Request>) {
    if slots.len() <= id.index() {
        slots.resize_with(id.index() + 1, || None);
    }
    slots[id.index()] = Some(request);
}

impl Elevator for Policy {
    fn insert(&mut self, env: &mut Env, id: RequestId) {
        self.changed = true;
        match self.calls {
            Calls::Failed => self.ready.push(id),
            Calls::Batch { .. } => self.arrived.push(id),
            Calls::Single { .. } => Python::attach(|py| {
                let request = self.remember(py, env, id);
                let Calls::Single { insert, .. } = &self.calls else { return };
                let done = request.and_then(|request| insert.bind(py).call1((env.now.since(self.origin), request)));
                if let Err(error) = done {
                    self.raised(py, env.now, "insert", error);
                }
            }),
        }
    }

    fn dispatch(&mut self, env: &mut Env) -> Option<RequestId> {
        if self.ready.is_empty() && self.changed && env.queued() > 0 {
            Python::attach(|py| self.ask(py, env));
            // If the object returned no request, it is not called again until another event
            // happens.
            self.changed = !self.ready.is_empty();
        }
        self.ready.pop()
    }

    fn drain(&mut self, env: &mut Env) -> Option<RequestId> {
        self.changed = true;
        self.dispatch(env).or_else(|| {
            let queued = self.queued.iter_mut().filter(|slot| slot.is_some());
            let first = queued.min_by_key(|slot| slot.as_ref().map(|slot| slot.get().number));
            first.and_then(Option::take).map(|request| request.get().id)
        })
    }

    fn absorb(&mut self, _: &mut Env, _: RequestId, absorbed: RequestId) {
        // A policy names no merge candidates, so two of its requests never merge.
        if let Some(slot) = self.queued.get_mut(absorbed.index()) {
            *slot = None;
        }
    }

    fn complete(&mut self, env: &mut Env, id: RequestId) {
        self.changed = true;
        let Some(request) = self.started.get_mut(id.index()).and_then(Option::take) else { return };
        Python::attach(|py| {
            let Some(complete) = &self.complete else { return };
            if let Err(error) = complete.bind(py).call1((env.now.since(self.origin), request)) {
                self.raised(py, env.now, "complete", error);
            }
        });
    }

    fn timer(&mut self, _: &mut Env) {
        self.changed = true;
    }
}
