package pass

// Samples are the options of a method that runs the model on samples, for calibration or training. They have the names
// and meaning of the data flags of commands that run models.
type Samples struct {
	// Path is the file or folder of samples: .npz, .npy, IDX, CSV, CIFAR-10, a folder of .npy, of images or of ONNX
	// test data.
	Path string `flag:"data" file:"yes" usage:"'path' of samples: .npz, .npy, IDX, CSV, CIFAR-10, a folder of .npy, of images or of ONNX test data"`
	// Labels is the name of the array or column of labels, or the path of a file of labels; empty for "labels".
	Labels string `flag:"labels" file:"yes" usage:"'name' of the array or column of labels, or path of a file of labels (default: labels)"`
	// Classes are the names of the classes in the order of their numbers; empty for those of the data, sorted.
	Classes List `flag:"classes" list:"yes" usage:"comma-separated 'names' of the classes in the order of their numbers (default: those of the data, sorted)"`
	// Columns are the names or numbers of the input columns of a CSV; empty for all but the labels.
	Columns List `flag:"columns" list:"yes" usage:"comma-separated 'names' or numbers of the input columns of a CSV"`
	// Scale is the factor of values: an input is (value·Scale - Mean)/Std; 0 for the default of the data.
	Scale float64 `flag:"scale" usage:"'factor' of values: an input is (value·scale - mean)/std"`
	// Mean is subtracted from values: one number, or one for each channel.
	Mean Numbers `flag:"mean" list:"yes" usage:"comma-separated 'numbers' subtracted from values: one, or one per channel"`
	// Std divides values: one number, or one for each channel.
	Std Numbers `flag:"std" list:"yes" usage:"comma-separated 'numbers' by which values are divided: one, or one per channel"`
	// Reshape is the shape of one sample.
	Reshape Sizes `flag:"reshape" list:"yes" usage:"comma-separated 'sizes' of the axes of one sample"`
	// Layout is the order of the axes of one image in arrays, chw or hwc; empty to derive it from the shapes.
	Layout string `flag:"layout" enum:"chw,hwc" usage:"'order' of the axes of one image in arrays: chw, hwc; its channels are moved to where the model has them (default: from the shapes)"`
	// Fill has the value of every element of inputs that are not in the data, as name=number.
	Fill List `flag:"fill" list:"yes" usage:"comma-separated 'name=number': the value of every element of inputs that are not in the data"`
	// Dims has the sizes of dynamic axes of the inputs, as name=size.
	Dims List `flag:"dim" list:"yes" usage:"comma-separated 'name=size' of dynamic axes of the inputs"`
	// Carry names outputs of a run that are inputs of the next one, besides caches of language models, as output=input.
	Carry List `flag:"carry" list:"yes" usage:"comma-separated 'output=input': outputs of a run that are inputs of the next one, besides caches of language models"`
	// Step is the maximum number of tokens in a run of a language model with caches; 0 for all but the last 8 of a
	// sample, and these one by one.
	Step int `flag:"step" usage:"maximum 'number' of tokens in a run of a language model with caches (default: all but the last 8 of a sample, and these one by one)"`
	// Prefetch is the number of batches that are read ahead; nil for the number of worker threads, within a limit of
	// memory.
	Prefetch *int `flag:"prefetch" usage:"'number' of batches read ahead; 0 reads each when it is needed (default: the number of worker threads, up to 64 MiB; 1 with --memory-budget)"`
	// Loaders is the number of goroutines that decode, convert and augment batches; 0 for the number of worker threads.
	Loaders int `flag:"loaders" usage:"'number' of goroutines that decode, convert and augment batches (default: the number of worker threads; 1 with --memory-budget)"`
	// Limit is the maximum number of samples that are read; 0 for all.
	Limit int `flag:"limit" usage:"maximum 'number' of training or calibration samples to read from --data"`
}

// Calibration is the group of options of a method that observes activations. Without a path, methods use random
// samples.
type Calibration struct {
	Samples
	// CalibrationSamples is the number of samples that the model runs on, spread evenly over the data; 0 means all.
	CalibrationSamples *int `flag:"calibrate" default:"128" usage:"'number' of calibration samples, spread evenly over the data; 0 for all"`
}
