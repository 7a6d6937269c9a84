import { useState } from 'react';

type Theme = 'system' | 'light' | 'dark';

const ORDER: readonly Theme[] = ['system', 'light', 'dark'];

export function nextTheme(theme: Theme): Theme {
  return ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length] ?? 'system';
}

/** The chosen theme; theme.js applies it at the next visit. */
export function useTheme(): [Theme, (theme: Theme) => void] {
  const [theme, setTheme] = useState<Theme>(
    (document.documentElement.dataset.theme as Theme | undefined) ?? 'system',
  );
  return [
    theme,
    (next) => {
      if (next === 'system') {
        localStorage.removeItem('theme');
        delete document.documentElement.dataset.theme;
      } else {
        localStorage.setItem('theme', next);
        document.documentElement.dataset.theme = next;
      }
      setTheme(next);
    },
  ];
}
