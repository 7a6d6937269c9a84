import { Button as AriaButton, type ButtonProps } from 'react-aria-components';
import { Link } from 'wouter';
import css from './Button.module.css';

type Kind = 'primary' | 'secondary' | 'danger' | 'quiet';

export function Button({ kind = 'secondary', ...props }: ButtonProps & { kind?: Kind }) {
  return <AriaButton {...props} className={`${css.button} ${css[kind]}`} />;
}

/** A link to another screen that looks like a button. */
export function ButtonLink({
  kind = 'secondary',
  href,
  children,
}: {
  kind?: Kind;
  href: string;
  children: React.ReactNode;
}) {
  return (
    <Link href={href} className={`${css.button} ${css[kind]}`}>
      {children}
    </Link>
  );
}

/** Downloads a file of the API. */
export function DownloadLink({ href, children }: { href: string; children: React.ReactNode }) {
  return (
    <a href={href} download className={`${css.button} ${css.secondary}`}>
      {children}
    </a>
  );
}
