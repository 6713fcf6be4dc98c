-- For wrk: METHOD and, for POST, a file with a picture.
init = function(arguments)
  wrk.method = arguments[1]
  if arguments[1] == "POST" then
    local file = io.open(arguments[2], "rb")
    wrk.body = file:read("*a")
    file:close()
    wrk.headers["Content-Type"] = "image/png"
  end
  wrk.headers["Host"] = "localhost"
end
