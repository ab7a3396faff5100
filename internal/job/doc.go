// Package job is the straight line from a model file to a smaller one and its report:
// open, run the passes, lay out, judge the gates, write, open again, report. Commands
// turn flags into an Options and print what comes back.
package job
