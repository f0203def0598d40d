"""See a policy: sessions to play with, a page in the browser, a window, videos."""
