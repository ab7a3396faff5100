#!/usr/bin/env node
// Runs the program that the package for this platform contains.
"use strict";

const { spawn } = require("node:child_process");

const name = `@mcompress/${process.platform}-${process.arch}`;
let program;
try {
  program = require.resolve(`${name}/bin/mcompress${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`mcompress: the package ${name} is not installed: either npm omitted optional dependencies, or there is no mcompress for this platform`);
  process.exit(1);
}

let child;
// The terminal sends an interrupt to both processes; the result is the program's. Other signals are passed on.
process.on("SIGINT", () => {});
for (const signal of ["SIGTERM", "SIGHUP"]) {
  process.on(signal, () => child.kill(signal));
}
child = spawn(program, process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`mcompress: ${error.message}`);
  process.exit(1);
});
child.on("exit", (code, signal) => {
  if (signal) {
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  } else {
    process.exit(code);
  }
});
