# What users get: the modules and their surface, and what they contain of others.

step "packages" install git
step "a version is published whole or not at all, and strangers can use it" release/strangers.sh
step "licences of the dependencies" tool licences
step "the public surface is the recorded one" tool surface
