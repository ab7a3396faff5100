// Command compat runs the forms that mcompress writes in other runtimes and generates docs/compatibility.md: which
// runtime loads a form, whether its outputs are right, and its speed and memory compared with the float model. `make
// compat` runs it.
//
// It uses mcompress by its command line only. Runtimes are in environments of their own, and workers that speak JSON
// lines run the models: worker.py with an adapter for each runtime, and web.mjs for node and browsers.
package main
