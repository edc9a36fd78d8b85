# Eight functions that call the Python package fogline. All arithmetic is there: what crosses the border are paths,
# plain numbers and words. Nothing is converted by itself, so that no object of Python is copied into R unseen.

.python <- new.env(parent = emptyenv())
.ledgers <- new.env(parent = emptyenv())

.onLoad <- function(libname, pkgname) {
  assign("fogline", .module("fogline"), envir = .python)
  assign("numpy", .module("numpy"), envir = .python)
}

.module <- function(name) {
  reticulate::import(name, convert = FALSE, delay_load = list(on_error = function(error) {
    stop("Python's package ", name, " cannot be loaded: ", conditionMessage(error),
         "\nSet RETICULATE_PYTHON to a Python (3.11 or later) in which fogline is installed.", call. = FALSE)
  }))
}

# A range for each column: two numbers, or the name of a public range such as "age".
.bounds <- function(bounds) {
  if (!is.list(bounds) || is.null(names(bounds)) || any(names(bounds) == ""))
    stop("bounds: expected a named list such as list(age = \"age\", stay = c(0, 60))", call. = FALSE)
  ends <- lapply(bounds, function(range) {
    if (is.character(range) && length(range) == 1) return(range)
    if (is.numeric(range) && length(range) == 2) return(reticulate::tuple(range[[1]], range[[2]]))
    stop("bounds: each is two numbers, or the name of a public range", call. = FALSE)
  })
  do.call(reticulate::dict, ends)
}

# Columns of numbers as a matrix of Python. R's missing values are NaN there, and such records count nowhere.
.records <- function(source, columns) {
  if (!is.data.frame(source)) stop("source: expected a path, an address or a data frame", call. = FALSE)
  missing <- setdiff(columns, names(source))
  if (length(missing)) stop("source: there is no column ", paste(missing, collapse = ", "), call. = FALSE)
  plain <- vapply(source[columns], is.numeric, logical(1))
  if (!all(plain)) stop("source: not numeric: ", paste(columns[!plain], collapse = ", "), call. = FALSE)
  held <- lapply(source[columns], function(column) {
    .python$numpy$frombuffer(writeBin(as.double(column), raw(), endian = "little"), dtype = "<f8")
  })
  .python$numpy$column_stack(unname(held))
}

# A process opens a ledger once, and keeps it.
.ledger <- function(path) {
  place <- normalizePath(path, mustWork = FALSE)
  if (is.null(.ledgers[[place]])) assign(place, .python$fogline$Ledger$open(path), envir = .ledgers)
  .ledgers[[place]]
}

fog_release <- function(source, bounds, epsilon, unit = NULL, max_contributions = 1, ledger = NULL, ...) {
  ranges <- .bounds(bounds)
  words <- list(bounds = ranges, epsilon = epsilon, max_contributions = as.integer(max_contributions), ...)
  if (!is.character(source)) {
    if (!is.null(unit)) stop("unit: give the path of a file, so that fogline itself reads whose record a row is",
                             call. = FALSE)
    source <- .records(source, names(bounds))
    words$columns <- as.list(names(bounds))
  }
  if (!is.null(unit)) words$unit <- unit
  if (!is.null(ledger)) words$ledger <- .ledger(ledger)
  do.call(.python$fogline$release, c(list(source), words))
}

fog_save <- function(shape, path) {
  shape$save(path)
  invisible(path)
}

fog_load <- function(path) .python$fogline$PrivateDensity$load(path)

fog_ask <- function(shape, questions, level = 0.95) {
  answered <- lapply(questions, function(question) {
    said <- reticulate::py_to_r(shape$ask(question, level = level)$to_dict())
    rows <- lapply(said$answers, function(row) {
      found <- row$estimate
      data.frame(question = question, of = row$label, value = found$value, standard_error = found$standard_error,
                 low = found$low, high = found$high)
    })
    do.call(rbind, rows)
  })
  do.call(rbind, answered)
}

fog_quantiles <- function(shape, column = NULL, q = c(0.25, 0.5, 0.75)) {
  found <- shape$quantile(as.list(q), column)
  numbers <- function(name) unlist(reticulate::py_to_r(.python$numpy$asarray(found[[name]])$tolist()))
  data.frame(q = q, value = numbers("value"), standard_error = numbers("standard_error"),
             low = numbers("low"), high = numbers("high"))
}

fog_sample <- function(shape, n, seed = NULL) {
  drawn <- shape$sample(as.integer(n), random_state = if (is.null(seed)) NULL else as.integer(seed))
  named <- unlist(reticulate::py_to_r(.python$numpy$asarray(shape$columns)$tolist()))
  cells <- matrix(unlist(reticulate::py_to_r(drawn$ravel()$tolist())), ncol = length(named), byrow = TRUE)
  stats::setNames(as.data.frame(cells), named)
}

fog_report <- function(shape, path) {
  shape$report(path)
  invisible(path)
}

fog_guarantee <- function(shape) reticulate::py_to_r(shape$guarantee$explain())
