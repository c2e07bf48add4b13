-- wrk -s mlflow.lua -t CLIENTS -c CLIENTS ADDRESS -- METRICS
-- Each thread is a client that makes a run, then logs so many metrics to it: a submission takes two
-- requests, and its time is that of both.

dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "report.lua")

local ffi = require("ffi")
ffi.cdef("typedef struct { long s; long us; } moment; int gettimeofday(moment *, void *);")

local at, metrics, began, run = ffi.new("moment"), {}, 0, nil
taken_us = {}

local function now_us()
   ffi.C.gettimeofday(at, nil)
   return tonumber(at.s) * 1e6 + tonumber(at.us)
end

function setup(thread)
   clients = clients or {}
   table.insert(clients, thread)
end

function init(arguments)
   wrk.headers["Content-Type"] = "application/json"
   for number = 1, tonumber(arguments[1]) do
      metrics[number] = string.format(
         '{"key": "metric-%d", "value": %d.25, "timestamp": 1767225600000, "step": 0}', number, number
      )
   end
   metrics = table.concat(metrics, ", ")
end

function request()
   if run == nil then
      began = now_us()
      return wrk.format("POST", "/api/2.0/mlflow/runs/create", nil, '{"experiment_id": "0"}')
   end
   local body = string.format('{"run_id": "%s", "metrics": [%s]}', run, metrics)
   return wrk.format("POST", "/api/2.0/mlflow/runs/log-batch", nil, body)
end

function response(status, _, body)
   if run == nil then
      run = body:match('"run_id": *"(%x+)"')
   else
      run = nil
      if status < 400 then
         table.insert(taken_us, now_us() - began)
      end
   end
end

function done(summary, _, _)
   local all = {}
   for _, thread in ipairs(clients) do
      for _, taken in ipairs(thread:get("taken_us")) do
         table.insert(all, taken)
      end
   end
   table.sort(all)
   report(summary, #all + summary.errors.status, function(percent)
      return all[math.max(1, math.ceil(#all * percent / 100))] or 0
   end)
end
