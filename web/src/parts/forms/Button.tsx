import type { ReactNode } from 'react';
import { Button as AriaButton, type ButtonProps } from 'react-aria-components';
import { Link } from 'wouter';
import css from './Button.module.css';

type Kind = 'primary' | 'secondary' | 'danger' | 'quiet';

/**
 * While `isPending` it turns a ring, keeps the focus, and does nothing. The library's own state names its progress to
 * screen readers by an id that is gone when the dialog closes.
 */
export function Button({
  kind = 'secondary',
  isPending = false,
  children,
  ...props
}: Omit<ButtonProps, 'children'> & { kind?: Kind; children?: ReactNode }) {
  const pending: ButtonProps = isPending
    ? { type: 'button', 'aria-disabled': 'true', onPress: () => {} }
    : {};
  return (
    <AriaButton
      {...props}
      {...pending}
      className={`${css.button} ${css[kind]} ${isPending ? css.pending : ''}`}
    >
      {isPending && <span className={css.ring} aria-hidden="true" />}
      {children}
    </AriaButton>
  );
}

/** A link to another screen that looks like a button. */
export function ButtonLink({
  kind = 'secondary',
  href,
  children,
}: {
  kind?: Kind;
  href: string;
  children: ReactNode;
}) {
  return (
    <Link href={href} className={`${css.button} ${css[kind]}`}>
      {children}
    </Link>
  );
}

/** Downloads a file of the API. */
export function DownloadLink({ href, children }: { href: string; children: ReactNode }) {
  return (
    <a href={href} download className={`${css.button} ${css.secondary}`}>
      {children}
    </a>
  );
}
