"""BMCEventSubscription: events of a management controller, posted to somebody's URL."""
