import { Link, useLocation } from 'wouter';
import css from './Tabs.module.css';

/** Links to the screens of one subject; the present one is marked. */
export function Tabs({ label, tabs }: { label: string; tabs: readonly { href: string; name: string }[] }) {
  const [location] = useLocation();
  return (
    <nav className={css.tabs} aria-label={label}>
      {tabs.map(({ href, name }) => (
        <Link
          key={href}
          href={href}
          className={css.tab}
          aria-current={href === location ? 'page' : undefined}
        >
          {name}
        </Link>
      ))}
    </nav>
  );
}
