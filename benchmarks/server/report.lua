-- What wrk says at the end, as one line of JSON.

function report(summary, answers, percentile_us)
   local errors = summary.errors
   io.write(string.format(
      '\n{"answers": %d, "seconds": %f, "refused": %d, "broken": %d, "p50_ms": %f, "p99_ms": %f}\n',
      answers, summary.duration / 1e6, errors.status,
      errors.connect + errors.read + errors.write + errors.timeout,
      percentile_us(50) / 1e3, percentile_us(99) / 1e3
   ))
end

function done(summary, latency, _)
   report(summary, summary.requests, function(percent) return latency:percentile(percent) end)
end
