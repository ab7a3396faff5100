// Package stopwatch measures how long a model takes to run and what memory that needs: in
// this process, of which a caller starts one for each measurement, and with a table and a trace of
// every node.
//
// It must not know flags, terminals or how the processes are started.
package latency
