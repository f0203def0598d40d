"""What people see: tables and figures as values, boards in the terminal, pages."""
