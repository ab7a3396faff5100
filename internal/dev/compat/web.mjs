// Runs models in onnxruntime-web: the answers of worker.py, for a page or for node. `node web.mjs ORT` serves requests like worker.py.

const ARRAYS = {
  float32: Float32Array, float64: Float64Array, float16: Uint16Array, bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array,
  uint16: Uint16Array, int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
};

// answer measures with the module ort; read returns the bytes of a model, memory the resident memory and its peak.
export async function answer(ort, request, read, memory) {
  let stage = "load";
  try {
    const before = memory.reset();
    const load = async (path) => ort.InferenceSession.create(await read(path), { executionProviders: ["wasm"], logSeverityLevel: 4 });
    const model = await load(request.Model);
    stage = "run";
    const feed = Object.fromEntries(request.Inputs.map((i) => [i.Name, decoded(ort, i)]));
    const outputs = await model.run(feed);
    const result = { Outputs: Object.entries(outputs).map(([name, t]) => encoded(name, t)), Memory: Math.max(0, memory.peak() - before) };
    if (request.Baseline) {
      stage = "baseline";
      const baseline = await load(request.Baseline);
      [result.Time, result.BaselineTime] = await interleaved([model, baseline], feed, request.Seconds);
    }
    return result;
  } catch (e) {
    return { Stage: stage, Error: String(e?.message ?? e).split(/\s+/).join(" ") };
  }
}

// interleaved returns the minimum time of a run of each model in seconds, in turn until the time is over. A measurement is of as many
// runs as take some milliseconds, as the clocks of browsers are coarse.
async function interleaved(models, feed, seconds) {
  const best = models.map(() => Infinity);
  const runs = [];
  for (const model of models) runs.push(Math.ceil(5 / Math.max(0.1, await elapsed(model, feed, 1))));
  for (const end = performance.now() + seconds * 1000; performance.now() < end; ) {
    for (const [i, model] of models.entries()) best[i] = Math.min(best[i], (await elapsed(model, feed, runs[i])) / runs[i] / 1000);
  }
  return best;
}

// elapsed returns the milliseconds of some runs.
async function elapsed(model, feed, runs) {
  const start = performance.now();
  for (let i = 0; i < runs; i++) await model.run(feed);
  return performance.now() - start;
}

function decoded(ort, i) {
  const bytes = Uint8Array.from(atob(i.Data ?? ""), (c) => c.charCodeAt(0));
  return new ort.Tensor(i.DType, new ARRAYS[i.DType](bytes.buffer), i.Shape ?? []);
}

function encoded(name, tensor) {
  const { buffer, byteOffset, byteLength } = tensor.data;
  const bytes = new Uint8Array(buffer, byteOffset, byteLength);
  let text = "";
  for (let at = 0; at < bytes.length; at += 4096) text += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return { Name: name, DType: tensor.type, Shape: [...tensor.dims], Data: btoa(text) };
}

async function serve(path) {
  const { readFile } = await import("node:fs/promises");
  const { readFileSync, writeFileSync } = await import("node:fs");
  const { createInterface } = await import("node:readline");
  const { pathToFileURL } = await import("node:url");
  const ort = await import(pathToFileURL(path));
  ort.env.wasm.numThreads = 1;
  const status = (field) => Number(readFileSync("/proc/self/status", "utf8").match(new RegExp(`${field}:\\s+(\\d+)`))[1]) * 1024;
  const memory = {
    reset() {
      writeFileSync("/proc/self/clear_refs", "5");
      return status("VmRSS");
    },
    peak: () => status("VmHWM"),
  };
  for await (const line of createInterface({ input: process.stdin })) {
    console.log(JSON.stringify(await answer(ort, JSON.parse(line), readFile, memory)));
  }
}

if (typeof process !== "undefined" && process.argv[1]?.endsWith("web.mjs")) await serve(process.argv[2]);
