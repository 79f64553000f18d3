"""Messages to exchanges (a call with all its results) and turns (a user message up to the next); turns to topics."""
