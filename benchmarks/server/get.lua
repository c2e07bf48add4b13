-- wrk -s get.lua ADDRESS

dofile(debug.getinfo(1, "S").source:match("@(.*/)") .. "report.lua")
