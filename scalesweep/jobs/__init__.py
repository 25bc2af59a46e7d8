"""Jobs that runs become: requests, packing, estimates, cost, submission, retries."""
