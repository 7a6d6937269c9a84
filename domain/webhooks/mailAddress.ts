/** Longest address (RFC 5321, 4.5.3.1.3) and longest part before the @. */
const ADDRESS_CHARS_MAX = 254;
const LOCAL_CHARS_MAX = 64;
/** The addresses that HTML forms take: no quotes, comments, lists, spaces or control characters, ASCII only. */
const ADDRESS =
  /^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)+$/;

/** Whether a text is one mail address and nothing else. */
export function isMailAddress(text: string): boolean {
  return text.length <= ADDRESS_CHARS_MAX && text.indexOf('@') <= LOCAL_CHARS_MAX && ADDRESS.test(text);
}

/** The part of an address that the audit log shows. */
export const domainOfAddress = (address: string): string => address.slice(address.lastIndexOf('@') + 1);
