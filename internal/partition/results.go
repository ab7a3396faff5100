package partition

import "github.com/mcompress/mcompress/report/partition"

// The results, as data.
type (
	Stage         = partition.Stage
	Port          = partition.Port
	Shared        = partition.Shared
	Pair          = partition.Pair
	Cut           = partition.Cut
	Manifest      = partition.Manifest
	Member        = partition.Member
	Part          = partition.Part
	Arrival       = partition.Arrival
	ShardManifest = partition.ShardManifest
	Segment       = partition.Segment
	Shard         = partition.Shard
	Operand       = partition.Operand
	Reduction     = partition.Reduction
	Result        = partition.Result
	DividedWeight = partition.DividedWeight
	WeightBytes   = partition.WeightBytes
	Refusal       = partition.Refusal
)
