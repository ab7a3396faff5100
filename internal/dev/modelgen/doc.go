// Package modelgen generates random models that are valid: typed ONNX graphs in which every node is chosen so that its
// types and shapes hold, as in NNSmith (Liu et al., ASPLOS 2023), and the blocks of networks as exporters write them.
// It varies opsets and IR versions, data types, sizes around blocks and pieces, the field that stores a weight, the
// nodes between a weight and its consumer, subgraphs and functions, and values that are rare. A model depends on its
// seed alone.
//
// Relate rewrites a model into an equivalent one, and Reductions makes smaller models of one, to find the cause of a
// failure.
//
// It writes protobuf messages on its own and shares no code with the packages under test but the numbers of element
// types.
package modelgen
