// SPDX-License-Identifier: Apache-2.0
//! libholdfast in Rust, by its C interface alone: counts in a ConfigMap while this process leads.
//!
//!     rustc --edition 2021 counter.rs -L DIRECTORY-OF-LIBHOLDFAST -l holdfast -l curl
//!     ./counter NAME IDENTITY KUBECONFIG
//!
//! All callbacks run in this program's own loop, on the main thread. Only the log does not.
use std::ffi::{c_void, CStr, CString};
use std::os::raw::{c_char, c_int, c_long};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

type Ptr = *mut c_void;
const SECOND: i64 = 1_000_000_000;
const CREATE: c_int = 2; // enum hf_verb
const UPDATE: c_int = 3;
const LEADING: c_int = 1; // enum hf_leader_state
const EXISTS: c_int = 2; // enum hf_error
const STUCK: c_int = 15;

#[repr(C)]
struct Status { error: c_int, http_code: c_int, retry_after_s: u32, reason: [c_char; 48], message: [c_char; 464] }

#[repr(C)]
struct Log { write: extern "C" fn(Ptr, c_int, *const c_char, *const c_char), ctx: Ptr, max_level: c_int }

#[repr(C)]
struct Host { size: usize, clock: Ptr, log: Log, metrics: Ptr, health: Ptr, thread_stack_bytes: usize }

#[repr(C)]
struct Resource { group: *const c_char, version: *const c_char, plural: *const c_char }

#[repr(C)]
struct Request {
    size: usize, verb: c_int, resource: Resource, ns: *const c_char, name: *const c_char, subresource: *const c_char, query: *const c_char,
    body: *const c_char, n_body: usize, fence: Ptr, deadline: i64, lane: c_int, patch: c_int,
}

#[repr(C)]
struct Response { size: usize, error: c_int, body: *const c_char, n_body: usize, fence_echoed: bool, status: Status }

#[repr(C)]
struct Controller {
    size: usize, name: *const c_char, runs: c_int, run: unsafe extern "C" fn(Ptr, Ptr) -> c_int, ctx: Ptr, after: Ptr, n_after: usize,
    is_settled: Ptr,
}

#[repr(C)]
struct LoopController {
    size: usize, on: Ptr, begin: extern "C" fn(Ptr, Ptr), drain: extern "C" fn(Ptr, Ptr), abort: extern "C" fn(Ptr, Ptr), ctx: Ptr,
}

#[repr(C)]
#[derive(Default)]
struct Timing { lease_duration: i64, renew_deadline: i64, retry_period: i64, request_timeout: i64, stop_grace: i64, drain_deadline: i64 }

// More members follow, which this program does not read.
#[repr(C)]
struct LeaderInfo { size: usize, state: c_int }

#[repr(C)]
struct ElectorConfig {
    size: usize, ns: *const c_char, name: *const c_char, identity: *const c_char, client: Ptr, timing: Timing, controllers: *const Controller,
    n_controllers: usize, labels: Ptr, n_labels: usize, events: bool, unfenced: bool, on_change: extern "C" fn(Ptr, *const LeaderInfo), ctx: Ptr,
    lock_type: Ptr, migrate_from: Ptr, migrate_from_ns: Ptr, coordinated: bool, cluster: Ptr, on: Ptr,
}

#[repr(C)]
struct PollFd { fd: c_int, events: i16, revents: i16 }

extern "C" {
    fn hf_loop_new(ret: *mut Ptr) -> c_int;
    fn hf_loop_free(on: Ptr) -> Ptr;
    fn hf_loop_fd(on: Ptr) -> c_int;
    fn hf_loop_dispatch(on: Ptr) -> usize;
    fn hf_loop_client_new(on: Ptr, inner: Ptr, ret: *mut Ptr) -> c_int;
    fn hf_loop_controller_run(term: Ptr, ctx: Ptr) -> c_int;
    fn hf_loop_run_term(run: Ptr) -> Ptr;
    fn hf_loop_run_done(run: Ptr, result: c_int);
    fn hf_term_client(term: Ptr) -> Ptr;
    fn hf_client_request(client: Ptr, request: *const Request, done: extern "C" fn(Ptr, *const Response), ctx: Ptr, id: *mut u64) -> c_int;
    fn hf_client_free(client: Ptr) -> Ptr;
    fn hf_rest_client_from_kubeconfig(host: *const Host, path: *const c_char, ret: *mut Ptr, status: *mut Status) -> c_int;
    fn hf_electors_new(host: *const Host, ret: *mut Ptr) -> c_int;
    fn hf_electors_add(electors: Ptr, config: *const ElectorConfig, ret: *mut Ptr, status: *mut Status) -> c_int;
    fn hf_electors_start(electors: Ptr, status: *mut Status) -> c_int;
    fn hf_electors_stop_begin(electors: Ptr, on: Ptr, done: extern "C" fn(Ptr, c_int, *const Status), ctx: Ptr) -> c_int;
    fn hf_electors_free(electors: Ptr) -> Ptr;
    fn curl_global_init(flags: c_long) -> c_int;
    fn poll(fds: *mut PollFd, n: u64, timeout_ms: c_int) -> c_int;
    fn signal(number: c_int, handler: usize) -> usize;
}

/// Used by the loop's thread only.
struct Counter {
    name: CString, on: Ptr, run: Ptr, client: Ptr, count: u64, exists: bool, writing: bool, ending: bool, result: Option<c_int>,
}

static ASKED: AtomicBool = AtomicBool::new(false);
extern "C" fn on_sigterm(_: c_int) { ASKED.store(true, Ordering::SeqCst) }

extern "C" fn on_log(_: Ptr, level: c_int, component: *const c_char, message: *const c_char) {
    unsafe { eprintln!("<{}>{}: {}", level, CStr::from_ptr(component).to_string_lossy(), CStr::from_ptr(message).to_string_lossy()) }
}

extern "C" fn on_change(_: Ptr, info: *const LeaderInfo) {
    let state = unsafe { (*info).state };
    println!("state {} {}", state, if state == LEADING { "leading" } else { "" });
}

extern "C" fn begin(ctx: Ptr, run: Ptr) {
    let counter = unsafe { &mut *(ctx as *mut Counter) };
    counter.count = 0;
    counter.exists = false;
    counter.ending = false;
    unsafe {
        if hf_loop_client_new(counter.on, hf_term_client(hf_loop_run_term(run)), &mut counter.client) == 0 {
            counter.run = run;
        } else {
            hf_loop_run_done(run, -12); // -ENOMEM: begin is called again after a pause
        }
    }
}

extern "C" fn drain(ctx: Ptr, _: Ptr) {
    let counter = unsafe { &mut *(ctx as *mut Counter) };
    counter.ending = true;
    counter.end();
}

extern "C" fn on_written(ctx: Ptr, response: *const Response) {
    let counter = unsafe { &mut *(ctx as *mut Counter) };
    let error = unsafe { (*response).error };
    counter.writing = false;
    counter.exists |= error == 0 || error == EXISTS;
}

extern "C" fn on_stopped(ctx: Ptr, result: c_int, _: *const Status) {
    unsafe { (*(ctx as *mut Counter)).result = Some(result) }
}

impl Counter {
    fn end(&mut self) {
        if self.run.is_null() || self.writing {
            return;
        }
        unsafe {
            hf_client_free(self.client);
            hf_loop_run_done(std::mem::replace(&mut self.run, null_mut()), 0);
        }
    }

    fn tick(&mut self) {
        if self.ending {
            self.end();
        }
        if self.run.is_null() || self.writing {
            return;
        }
        self.count += 1;
        let name = self.name.to_str().unwrap();
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{}"}},"data":{{"count":"{}"}}}}"#,
            name, self.count);
        let resource = Resource { group: text(b"\0"), version: text(b"v1\0"), plural: text(b"configmaps\0") };
        let request = Request {
            size: std::mem::size_of::<Request>(), verb: if self.exists { UPDATE } else { CREATE }, resource, ns: text(b"default\0"),
            name: self.name.as_ptr(), subresource: null(), query: null(),
            body: body.as_ptr() as *const c_char, n_body: body.len(), fence: null_mut(), deadline: 0, lane: 0, patch: 0,
        };
        let ctx = self as *mut Counter as Ptr;
        self.writing = unsafe { hf_client_request(self.client, &request, on_written, ctx, null_mut()) } == 0;
    }

    fn once(counter: *mut Counter) {
        unsafe {
            let mut fd = PollFd { fd: hf_loop_fd((*counter).on), events: 1, revents: 0 };
            poll(&mut fd, 1, 100);
            hf_loop_dispatch((*counter).on);
            (*counter).tick();
        }
    }
}

fn text(bytes: &'static [u8]) -> *const c_char { bytes.as_ptr() as *const c_char }

fn check(result: c_int, status: &Status) {
    if result != 0 {
        eprintln!("error {}: {}", result, unsafe { CStr::from_ptr(status.message.as_ptr()) }.to_string_lossy());
        std::process::exit(1);
    }
}

fn main() {
    let args: Vec<CString> = std::env::args().map(|a| CString::new(a).unwrap()).collect();
    let mut status = Status { error: 0, http_code: 0, retry_after_s: 0, reason: [0; 48], message: [0; 464] };
    let log = Log { write: on_log, ctx: null_mut(), max_level: 0 };
    let host = Host { size: std::mem::size_of::<Host>(), clock: null_mut(), log, metrics: null_mut(), health: null_mut(), thread_stack_bytes: 0 };
    let (mut on, mut rest, mut electors) = (null_mut(), null_mut(), null_mut());
    unsafe {
        signal(13, 1); // SIGPIPE, SIG_IGN
        signal(15, on_sigterm as extern "C" fn(c_int) as usize);
        curl_global_init(3); // before the first thread
        check(hf_loop_new(&mut on), &status);
        check(hf_rest_client_from_kubeconfig(&host, args[3].as_ptr(), &mut rest, &mut status), &status);
        let counter = Box::into_raw(Box::new(Counter {
            name: args[1].clone(), on, run: null_mut(), client: null_mut(), count: 0, exists: false, writing: false, ending: false, result: None,
        }));
        let ctx = counter as Ptr;
        let mut in_loop = LoopController { size: std::mem::size_of::<LoopController>(), on, begin, drain, abort: drain, ctx };
        let controller = Controller {
            size: std::mem::size_of::<Controller>(), name: text(b"count\0"), runs: 0, run: hf_loop_controller_run,
            ctx: &mut in_loop as *mut LoopController as Ptr, after: null_mut(), n_after: 0, is_settled: null_mut(),
        };
        let timing = Timing { lease_duration: 6 * SECOND, renew_deadline: 3 * SECOND, retry_period: SECOND, ..Default::default() };
        let config = ElectorConfig {
            size: std::mem::size_of::<ElectorConfig>(), ns: text(b"default\0"), name: args[1].as_ptr(), identity: args[2].as_ptr(), client: rest,
            timing, controllers: &controller, n_controllers: 1, labels: null_mut(), n_labels: 0, events: false, unfenced: false, on_change,
            ctx: null_mut(), lock_type: null_mut(), migrate_from: null_mut(), migrate_from_ns: null_mut(), coordinated: false,
            cluster: null_mut(), on,
        };
        check(hf_electors_new(&host, &mut electors), &status);
        check(hf_electors_add(electors, &config, null_mut(), &mut status), &status);
        check(hf_electors_start(electors, &mut status), &status);
        while !ASKED.load(Ordering::SeqCst) {
            Counter::once(counter);
        }
        check(hf_electors_stop_begin(electors, on, on_stopped, ctx), &status);
        while (*counter).result.is_none() {
            Counter::once(counter);
        }
        let result = (*counter).result.unwrap();
        if result != STUCK {
            hf_electors_free(electors);
            hf_client_free(rest);
            hf_loop_free(on);
        }
        std::process::exit(if result == STUCK { 70 } else { (result != 0) as c_int });
    }
}
