-- wrk -s post.lua ADDRESS -- FILE LINES_PER_REQUEST CONTENT_TYPE
-- Posts the lines of a file, each once.

dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "report.lua")

local file, lines

function init(arguments)
   file = assert(io.open(arguments[1], "r"))
   lines = tonumber(arguments[2])
   wrk.headers["Content-Type"] = arguments[3]
end

function request()
   local body = {}
   for number = 1, lines do
      body[number] = assert(file:read("*l"), "the file is too short for this run")
   end
   return wrk.format("POST", nil, nil, table.concat(body, "\n"))
end

