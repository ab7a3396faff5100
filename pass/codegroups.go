package pass

// A CodeGroup is a list of codes on one subject.
type CodeGroup struct {
	Title string
	Codes []CodeDescription
}

// A CodeDescription is the meaning of a code, and what a user can do about it.
type CodeDescription struct {
	Code    Code
	Meaning string // one sentence
}

// CodeGroups are all codes with their descriptions, which docs/reasons.md and docs/report-schema.json repeat.
func CodeGroups() []CodeGroup {
	return []CodeGroup{
		{"Selection", []CodeDescription{
			{NotSelected, "--only selects other weights; add a pattern to include this one."},
			{Deselected, "--skip excludes the weight; remove the pattern to include it."},
			{Small, "The weight has fewer elements than --min-size, which is the detail; lower it to include the weight."},
			{NotChosen, "The search of --auto assigned another method, or none, to the weight; relax its gates or its target " +
				"size for a different choice."},
		}},
		{"Constants that are no weights", []CodeDescription{
			{Unused, "No node uses the constant; removing dead code from the model makes the file smaller."},
			{GraphOutput, "The constant is an output of the graph, whose data type has to stay."},
			{NoWeight, "The constant is of a data type without fractions, the detail; only floats are compressed."},
		}},
		{"Uses and forms that the method does not support", []CodeDescription{
			{Unsupported, "The method does not support this use of the weight by the node; another method may."},
			{Bias,
				"The constant is the bias of the node, which is kept in float because it is small and added to an accumulator."},
			{Embedding, "The weight is the table of an embedding, which is pruned with --embeddings only."},
			{TwoConsts, "Both operands of the node are constants; constant folding replaces such a product."},
			{Argument, "The weight is an argument of the node, which calls a function of the model; inline the function to " +
				"compress it, or use a method that stores weights only."},
			{Ambiguous, "Two values of the graph have the name of the weight; rename one of them."},
			{Shared, "The node also uses the weight, and needs it in float; a method that stores weights only supports that."},
			{View, "The weight reaches its consumer through the node, a view or cast that the method does not support; " +
				"constant folding removes such nodes."},
			{CallerAttribute, "Each call of a function sets the attribute of the node that is the detail; inline the function " +
				"to compress the weight."},
			{SeveralConsumers, "The weight has several consumers, and the method would have to change all of them."},
			{Overridable, "The weight is a graph input with a default, which callers may replace; remove it from the inputs " +
				"to compress it."},
			{DType, "The method does not support the float data type of the weight, which is the detail; convert the weight " +
				"to float32."},
			{Opset, "The opset of the model is too low, or cannot be raised; export the model with a higher one."},
			{Shape,
				"The method does not support the shape or the axes of the weight; another granularity, block size or method may."},
			{NotFinite, "The weight has NaN or infinite elements; they have to be repaired in the source model."},
			{NotRepresented, "The values of the weight are outside the range of the data type; choose another data type, or " +
				"--clamp where the method has it."},
			{NoScale, "The largest magnitude of the weight, or of a channel or block of it, gives no scale of normal float " +
				"size, or dequantized values that overflow; such values are usually dead, or errors of training."},
			{NotConverged, "The eigenvalues of the weight do not converge; report it with the model."},
			{Already,
				"The constant is quantized, in the data type that is the detail; start from the float model for another form."},
			{StoredSparse, "The weight is stored sparse already; convert it with --format dense to compress it otherwise."},
			{StoredDense, "The weight is stored dense already, and nothing is to be expanded."},
		}},
		{"Weights and models that the method would not improve", []CodeDescription{
			{Larger, "The weight would become larger, by the sizes in the detail, because scales, indices or factors need " +
				"more bytes than are saved."},
			{FileLarger, "The file would not become smaller, so the source is copied unchanged; choose another method or a " +
				"larger --amount."},
			{NoSparseForm, "No sparse form of the weight is smaller than the dense one; prune it first, or more."},
			{RoundsToZero, "--amount is less than one element, channel or group of the weight; raise it."},
			{ChannelsTarget, "Channels of other weights were removed until the target was reached."},
			{ChannelsLarger,
				"The channels with the smallest magnitude of its group are all in other weights, so that its own stay."},
			{LayerKept,
				"The weight is in a layer that is kept, or in none that is repeated; raise --amount to remove more layers."},
			{NoRepeatedLayers, "The model has no two successive layers of one kind whose inputs and outputs of the graph, if " +
				"there are any, are numbered; --allow-unchanged copies it."},
			{AlreadyFactored, "The weight is one of two factors of the rank in the detail, and is not replaced again."},
			{NotScaled, "The producer of the input in the detail, or of all inputs of products, cannot absorb a scale; " +
				"--insert-mul, where the method has it, adds a Mul."},
			{Channels, "The node, a consumer of the channels, does not allow scaling them."},
			{Balanced, "The channels of the adjacent layers are balanced already."},
			{NoGain, "No scale of the channels lowers the quantization error."},
			{NotObserved, "No calibration sample computes the input of the layer; add samples that do."},
			{Inputs, "The calibration samples give no statistics of the input of the layer, for the reason in the detail, " +
				"such as NaN, so that nothing is derived from them; correct or remove such samples."},
			{NotImproved, "Training did not improve the model on the validation set, so that the weights from before the " +
				"training are kept; more samples or another method may help."},
		}},
		{"Normalizations and layers that are not folded or scaled", []CodeDescription{
			{NoLayer, "The normalization is not folded, as no layer with a constant weight is adjacent; the node, if there is " +
				"one, is no such layer."},
			{LayerSelected, "--only and --skip exclude the weight of the adjacent layer, which the detail names."},
			{FoldOutput, "The normalization is not folded, as the output of the layer has other consumers."},
			{FoldChannels, "The normalization is not folded, as its channels are not known to be those of the layer; the " +
				"detail has their numbers."},
			{FoldPadding,
				"The normalization is not folded, as the layer after it pads with zeros, which the normalization would shift."},
			{FoldTraining, "The normalization is in training mode; export the model for inference."},
			{FoldParameters,
				"The parameters of the normalization are not one finite constant per channel; export the model for inference."},
		}},
		{"Channels that are not pruned", []CodeDescription{
			{ChannelsOperator, "Channels are not followed through the node, whose operator the method does not support."},
			{ChannelsAxis,
				"The node uses the channels on an axis, or combines them in a way, that does not allow removing some."},
			{ChannelsUnknown, "The shape, axes or indices in the detail are not known at the node; export the model with " +
				"static shapes, or fold its constants."},
			{ChannelsConstant,
				"The constant that the node reads together with the channels has a form, in the detail, that cannot be pruned."},
			{ChannelsShared, "Another use of the weight or constant in the detail needs all channels."},
			{ChannelsOutput, "The channels are those of a graph output, whose shape has to stay."},
			{ChannelsInput, "The channels are those of a graph input, whose shape has to stay."},
			{ChannelsSubgraph, "The channels are used in a subgraph, in which they are not followed."},
			{ChannelsSelected,
				"--only and --skip exclude a weight, in the detail, whose channels are pruned together with these."},
			{ChannelsKind, "The method does not remove channels of this kind; the detail names the methods that do."},
		}},
		{"Changes", []CodeDescription{
			{Pruned, "The detail is the number of pruned elements, channels or groups."},
			{LayerRemoved, "The weight is part of a removed layer; the detail is the number of layers that are kept."},
			{Factored, "The weight is replaced by two factors of the rank in the detail; raise the rank for a smaller error."},
			{SparseForm, "The weight is stored in the smallest sparse form, whose size the detail compares with others."},
			{Expanded, "The weight is stored dense in place of the sparse form in the detail."},
			{Equalized, "The channels of the weight and of the adjacent layers are scaled to equal ranges, which lowers the " +
				"quantization error."},
			{Smoothed, "Outliers of activations are scaled into the weight; the detail has alpha and the scaled producer."},
			{AbsorbedScale, "The constant is divided by the scale of its consumers' weights."},
			{FoldedIn, "An operator after or before the layer is folded into the weight."},
			{FoldedAway, "The constant is removed, as its operator is folded into the adjacent layer."},
			{BiasCorrected, "The mean quantization error of the weight is subtracted from the bias."},
			{DeadChannels, "So many channels or blocks of the weight are too small for a scale, as weight decay leaves them, " +
				"and are stored as zeros, which changes the weight by less than float32 rounds its largest element; pruning them " +
				"makes the model smaller."},
			{Clamped, "Elements beyond the range of the data type are clamped to it; the detail has their number."},
			{Symmetric, "The weight is quantized symmetrically, because its consumers support no zero points."},
			{Unsigned, "The weight is quantized to uint8, which ONNX Runtime requires for left operands and for weights of " +
				"several products."},
			{GPTQConsumers,
				"The weight is rounded to nearest, because it has several products, and GPTQ uses the inputs of one."},
			{GPTQLayout, "The weight is rounded to nearest, because it is not stored as the matrix of one product."},
			{GPTQScope,
				"The weight is rounded to nearest, because it is in a subgraph or function, whose inputs are not observed."},
			{GPTQInputs,
				"The weight is rounded to nearest, because of the inputs of its product, for the reason in the detail."},
			{AWQUnscaled, "AWQ scaled no weight, for the reason in the detail: the result is that of --algo rtn."},
			{NearestChosen, "The weight is rounded to nearest, because --search auto compared the output SQNR of the model on " +
				"random inputs with that of MSE-optimal scales."},
			{WasInput, "The weight is no longer a graph input, as callers cannot replace it in its new form; export the model " +
				"with IR version 4 or later to avoid that."},
		}},
		{"Nodes that are computed in float32", []CodeDescription{
			{FloatRange, "Results of the nodes, such as powers, sums and exponentials, may leave the range of the 16-bit type."},
			{FloatPrecision,
				"The nodes, such as running sums, angles and coordinates, need more bits of precision than the 16-bit type has."},
			{FloatTypes, "The values of the nodes have a fixed type, because of a subgraph, a sequence, or a missing 16-bit " +
				"variant of the operator."},
			{FloatOperator, "The nodes have operators that are not part of ONNX, of which no 16-bit variant is known."},
			{FloatFunction, "The nodes are part of, or call, the function in the detail, whose calls differ in types; inline " +
				"it to convert the nodes."},
			{FloatQuantized, "The nodes compute with values that are quantized already."},
			{FloatSelected,
				"--keep-float32 selects the nodes, or --only and --skip exclude a weight of theirs, which the detail names."},
			{FloatWeight,
				"Values of a weight or bias of the node, which the detail names, cannot be represented in the smaller type."},
			{FloatNotFinite,
				"A weight or an activation of the node has NaN or infinite elements; repair the model, or remove the samples."},
			{FloatActivation, "Activations of the nodes come close to the end of the 16-bit type's range, or exceed it, on " +
				"the calibration samples."},
			{FloatNotObserved, "No calibration sample computes an activation of the node; add samples that do."},
			{FloatNoScale,
				"The range of an activation of the node gives no scale of normal float32 size; the detail has the range."},
			{FloatSQNR,
				"An activation of the node loses too much when it is quantized; a lower --activation-sqnr quantizes more nodes."},
		}},
		{"Run time and model", []CodeDescription{
			{NoKernel, "ONNX Runtime has no kernel for the operators in the detail; run the model with the embedded engine, " +
				"or choose another data type."},
			{FloatZeroPoints, "The weight has float zero points, which ONNX Runtime dequantizes in every run; symmetric " +
				"quantization is faster."},
			{StoredTwice, "The table has two quantized copies at run time, as the lookup requires one byte per value."},
			{DenseAtRunTime, "The runtime expands the weight to float when it loads the model, for the reason in the detail; " +
				"only the file is smaller."},
			{SlowerThanFloat, "The method is known to make models slower than float in a runtime of the target, by the factor " +
				"in the detail; --max-latency-ratio measures the model at hand."},
			{RandomCalibration, "Calibration used random inputs; give real ones with --data."},
			{ChannelsMoved, "The axes of images in the data were transposed to the order of the model's input, both of which " +
				"the detail has; --layout declares the order of the data."},
			{RangesUnknown, "The ranges of activations were not measured, so values may overflow; give samples with --data."},
			{ActivationRange, "The detail is the largest activation on the samples, and the range of the data type."},
			{ActivationOutOfRange,
				"The activation is close to the end of the data type's range, or beyond it, and stays float32."},
			{IRRaised,
				"The IR version of the model is raised, and initializers are no longer graph inputs; --keep-ir prevents that."},
			{IRLowered, "The IR version of the model is lowered to one that the runtimes of the target load, as nothing in " +
				"the model needs a newer one; --keep-ir prevents that."},
			{OpsetNotRaised, "The opset of the model cannot be raised because of the node; export the model with a higher one."},
			{OpsetRaised, "The opset of the model is raised, because the form of the weights requires it."},
		}},
		{"Comparison of two files", []CodeDescription{
			{Identical, "Both files have the same tensor."},
			{Unmatched, "No tensor of the result corresponds to the weight, by name or by shape."},
		}},
	}
}

// Codes are all codes, in the order of their groups.
func Codes() []Code {
	var list []Code
	for _, g := range CodeGroups() {
		for _, d := range g.Codes {
			list = append(list, d.Code)
		}
	}
	return list
}
