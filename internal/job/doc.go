// Package job compresses one model file and reports on it: open, run the passes, lay out, evaluate the gates, write,
// open again, report. Commands turn flags into Options and print the Result.
package job
