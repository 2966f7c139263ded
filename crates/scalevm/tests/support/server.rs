//! A program that runs, for tests that watch it.

use super::place::Place;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

/// Two threads fight for a lock; each `f` on stdin starts a process that computes, and the end of
/// stdin is its end.
const SERVER: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

pthread_mutex_t planted_mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline)) void planted_contention(void)
{
    pthread_mutex_lock(&planted_mutex);
    usleep(500);
    pthread_mutex_unlock(&planted_mutex);
}

__attribute__((noinline)) void planted_child(void)
{
    for (volatile long work = 0; work < 600000000; work++)
        ;
}

static void *fight(void *nothing)
{
    for (;;)
        planted_contention();
}

int main(void)
{
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], 0, fight, 0);
    puts("ready");
    fflush(stdout);
    for (char order; read(0, &order, 1) == 1;)
        if (fork() == 0) {
            planted_child();
            _exit(0);
        }
    puts("unharmed");
}
"#;

/// A program that runs, and ends with the test.
pub struct Server(Child);

impl Server {
    /// Starts it; it is at work when this returns.
    pub fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut server = Server(command.spawn().expect("it starts"));
        let mut ready = [0; 6];
        let stdout = server.0.stdout.as_mut().expect("a pipe");
        stdout.read_exact(&mut ready).expect("it is at work");
        assert_eq!(&ready, b"ready\n");
        server
    }

    /// The program of [`SERVER`].
    pub fn program(place: &Place) -> String {
        Server::built(place, "server", SERVER)
    }

    /// The program `name` of a source in C.
    pub fn built(place: &Place, name: &str, source: &str) -> String {
        let source = place.source(&format!("{name}.c"), source);
        let program = place.file(name);
        let flags = "-O1 -g -fno-omit-frame-pointer -fno-optimize-sibling-calls -pthread -o";
        let flags = flags.split(' ');
        let mut compiler = Command::new("cc");
        let status = compiler.args(flags).args([&program, &source]).status();
        assert!(status.expect("a compiler").success());
        program
    }

    pub fn new(place: &Place) -> Self {
        Server::start(&mut Command::new(Server::program(place)))
    }

    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Lets it start a process.
    pub fn fork(&mut self) {
        self.order("f");
    }

    /// Writes to its stdin.
    pub fn order(&mut self, text: &str) {
        let orders = self.0.stdin.as_mut().expect("a pipe");
        orders.write_all(text.as_bytes()).expect("it reads");
    }

    /// Ends it as it ends by itself, which it can only if nothing has harmed it.
    pub fn end(mut self) {
        drop(self.0.stdin.take());
        let mut rest = String::new();
        let stdout = self.0.stdout.as_mut().expect("a pipe");
        stdout.read_to_string(&mut rest).expect("text");
        assert_eq!(rest, "unharmed\n");
        assert!(self.0.wait().expect("it ends").success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
