package fleet

import (
	"cmp"
	"container/heap"
	"fmt"
	"strconv"
	"strings"
)

// A Shard is the part of a list that one of several workers processes.
type Shard struct {
	Index int    `json:"index"` // from 0
	Count int    `json:"count"`
	From  string `json:"from,omitempty"` // the environment variable that sets the index; empty if it was given
}

// Whole is the only shard of a list.
var Whole = Shard{Count: 1}

// String returns the form INDEX/COUNT.
func (s Shard) String() string { return fmt.Sprintf("%d/%d", s.Index, s.Count) }

// ParseShard reads INDEX/COUNT, such as 0/16.
func ParseShard(text string) (Shard, error) {
	index, count, ok := strings.Cut(text, "/")
	i, err1 := strconv.Atoi(index)
	n, err2 := strconv.Atoi(count)
	if !ok || err1 != nil || err2 != nil || i < 0 || i >= n {
		return Shard{}, fmt.Errorf("invalid shard %q; use INDEX/COUNT with an index from 0, such as 0/16", text)
	}
	return Shard{Index: i, Count: n}, nil
}

// A scheduler is the environment variables that give a task its index and the number of tasks. The index begins at
// base, or at the value of first, and counts in steps of the value of step.
type scheduler struct {
	index, count string
	base         int
	first, step  string
}

// KubernetesCount is the environment variable with the number of tasks of a Kubernetes Job.
const KubernetesCount = "JOB_COMPLETIONS"

// schedulers are those that run a task many times, each with an index of its own.
var schedulers = []scheduler{
	// Kubernetes, Indexed Job: the manifest has to set the count.
	{index: "JOB_COMPLETION_INDEX", count: KubernetesCount},
	{
		index: "SLURM_ARRAY_TASK_ID",
		count: "SLURM_ARRAY_TASK_COUNT",
		first: "SLURM_ARRAY_TASK_MIN",
		step:  "SLURM_ARRAY_TASK_STEP",
	},
	{index: "CI_NODE_INDEX", count: "CI_NODE_TOTAL", base: 1}, // GitLab; without "parallel" it sets the count only
	{index: "CIRCLE_NODE_INDEX", count: "CIRCLE_NODE_TOTAL"},
	{index: "BUILDKITE_PARALLEL_JOB", count: "BUILDKITE_PARALLEL_JOB_COUNT"},
	{index: "AWS_BATCH_JOB_ARRAY_INDEX", count: "AWS_BATCH_JOB_ARRAY_SIZE"},
	{index: "CLOUD_RUN_TASK_INDEX", count: "CLOUD_RUN_TASK_COUNT"},
	{index: "BATCH_TASK_INDEX", count: "BATCH_TASK_COUNT"}, // Google Batch
}

// FromEnvironment returns the shard of the scheduler that runs this process, Whole if there is none. getenv is
// os.Getenv.
func FromEnvironment(getenv func(string) string) (Shard, error) {
	for _, s := range schedulers {
		if getenv(s.index) != "" && getenv(s.count) != "" {
			return s.shard(getenv)
		}
	}
	return Whole, nil
}

func (s scheduler) shard(getenv func(string) string) (Shard, error) {
	var errs []error
	number := func(name string, def int) int {
		text := getenv(name)
		if text == "" {
			return def
		}
		n, err := strconv.Atoi(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("environment variable %s: invalid number %q", name, text))
		}
		return n
	}
	id, count, first, step := number(s.index, 0), number(s.count, 0), number(s.first, s.base), number(s.step, 1)
	if len(errs) > 0 {
		return Shard{}, errs[0]
	}
	if step < 1 || id < first || (id-first)%step != 0 || (id-first)/step >= count {
		return Shard{}, fmt.Errorf(
			"environment variables: %s=%d is none of %s=%d indexes from %d in steps of %d; give --shard",
			s.index,
			id,
			s.count,
			count,
			first,
			step,
		)
	}
	return Shard{Index: (id - first) / step, Count: count, From: s.index}, nil
}

// Assign returns the shard of each item of a list, by the bytes of the items: each is assigned to the shard of fewest
// bytes so far, of equal ones to the first. Items that are appended to the list change no assignment. No shard has more
// bytes than the mean and the largest item together.
func Assign(bytes []int64, shards int) []int {
	loads := make(loads, shards)
	for i := range loads {
		loads[i].shard = i
	}
	of := make([]int, len(bytes))
	for i, n := range bytes {
		of[i] = loads[0].shard
		loads[0].bytes += max(n, 1) // empty items, too, are distributed
		heap.Fix(&loads, 0)
	}
	return of
}

// loads is a heap of shards by their bytes, then by their index.
type loads []struct {
	shard int
	bytes int64
}

func (l loads) Len() int      { return len(l) }
func (l loads) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l loads) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(l[i].bytes, l[j].bytes), cmp.Compare(l[i].shard, l[j].shard)) < 0
}
func (l *loads) Push(any) { panic("the number of shards is fixed") }
func (l *loads) Pop() any { panic("the number of shards is fixed") }
