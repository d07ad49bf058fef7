"""`python -m otprop` is the command `otprop`."""

from otprop.app import main

main()
