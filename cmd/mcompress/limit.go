package main

import (
	"math"
	"runtime/debug"
)

// recipeShare is the part of the memory limit that running recipes may hold: the rest is
// for the skeleton, the report and what the collector has not yet taken back.
const recipeShare = 2

// limitMemory makes the garbage collector work harder rather than let the heap grow
// beyond limit bytes.
func limitMemory(limit int64) { debug.SetMemoryLimit(limit) }

// unlimitMemory is for training: what it takes has a budget of its own, and a collector that worked against its arrays
// would run all the time.
func unlimitMemory() { debug.SetMemoryLimit(math.MaxInt64) }

// recipeBudget is what running recipes may hold under the limit.
func recipeBudget(limit int64) int64 { return max(1, limit/recipeShare) }
