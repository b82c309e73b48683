"""What Ingot loads inside Ironic: push to the operator, and patches that keep Ironic quick.

    driver        the notification driver that Ironic loads; turns its events into "look again"
    save_hook     notes every saved change of a node, because notifications alone lose some
    sender        one thread that posts what accumulated to the operator
    fast_key      Redfish sessions are found by a fast keyed hash, not by 600,000 rounds of PBKDF2
    bmc_retries   a dead BMC holds a worker for seconds, not minutes; a busy one is asked often
    ipmi_words    an IPMI call that failed says why
    one_life      a worker does not outlive its master
    one_look      a look at a host's power reads its system once, not four times
    paced_looks   looks at the power of all hosts are spread over the time until the next round
    quick_schemas the schemas of requests are checked once, not with each request
    quick_sqlite  the database waits for the disk at checkpoints, not at each write
    kept_sqlite   connections to the database are kept, instead of opened for each question
    sqlite_turns  threads that write to the database wait for each other, instead of failing
    certificates  a renewed certificate is served without a restart
    patient_heartbeats   a heartbeat waits for a node that is locked, instead of being dropped
    early_reports   inspection data wait for a node that is about to wait for them, instead of being refused
    token_again   a token that was lost together with Ironic is given to its agent once more
    bounded_settings   BIOS settings that a machine does not take are given up and named, instead of waited for without end
    honest_updates   an update of a BMC that the BMC says has failed fails, instead of counting as one without effect
    quiet_steps   what a deploy step is told is not logged
    quiet_orders  what an agent is told to do is in no error
    roomy_api     the HTTP server takes, keeps and works on more connections at once
    unbroken_deploy   a deployment goes on after Ironic was killed, where its agent knows how far it came
    unbroken_clean    a cleaning does so too, and one that was over is ended, not done again
    unbroken_power    a machine that was being switched on or rebooted is when Ironic starts again
    unbroken_updates  updates and volumes that a BMC was asked for go on, and a step that was over is gone on from
    fresh_steps   a cleaning, a deployment or a service begins with nothing left of an earlier one
    no_stragglers all nodes that Ironic was at work with are failed at its start, not the first of them
    restart       how something is done for some nodes when Ironic starts again
    cut_off       how what was cut off goes on, or fails as Ironic would have it
    old_ramdisk   whether the ramdisk that ran before a reboot runs still
    over          a note that all steps of a cleaning or a deployment are done
    unbroken_steps    work in steps, as it goes on: ended where it was over, else as its agent knows
    agent_record  what an agent knows of a step that Ironic was killed at
    selfcheck     applies the patches, once, and knows which of them hold

Nothing here may block or raise into Ironic, and nothing logs or sends a payload: payloads carry user data.
"""
