//! The discrete-event engine: tasks, request queue, device, virtual time.
