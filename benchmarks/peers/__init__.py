"""One module and one requirements file per library that is compared; `worker` runs any of them."""
