"""Files of pictures: their structure, read in time that is linear in their bytes."""
