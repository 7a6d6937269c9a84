// Sets the chosen theme before the first paint; without a choice the system's theme applies.
const theme = localStorage.getItem('theme');
if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme;
