-- What wrk says at the end, as one line of JSON.

function done(summary, latency, _)
   local errors = summary.errors
   io.write(string.format(
      '\n{"requests": %d, "seconds": %f, "refused": %d, "broken": %d, "p50_ms": %f, "p99_ms": %f}\n',
      summary.requests, summary.duration / 1e6, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout,
      latency:percentile(50) / 1e3, latency:percentile(99) / 1e3
   ))
end
