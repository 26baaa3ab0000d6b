//! Size of an RSA key, for error messages. The signing library reports only that the key is not
//! usable.

use rustls::pki_types::PrivateKeyDer;

/// Usable sizes of RSA keys, bits; see [`is_usable`].
pub(super) const RSA_BITS: &str = "2048, 3072 or 4096";

/// Returns whether RSA keys of this size can sign.
pub(super) const fn is_usable(bits: u64) -> bool {
    bits >= 2048 && bits <= 4096 && bits.is_multiple_of(1024)
}

/// Returns the size of an RSA key in bits, or `None` if the key is of another kind or unreadable.
pub(super) fn rsa_bits(key: &PrivateKeyDer<'_>) -> Option<u64> {
    match key {
        PrivateKeyDer::Pkcs1(key) => bits_of_pkcs1(key.secret_pkcs1_der()),
        PrivateKeyDer::Pkcs8(key) => {
            /// Object identifier of rsaEncryption: 1.2.840.113549.1.1.1.
            const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
            // The fields are a version, the kind of key, and the key.
            let (fields, _) = value(SEQUENCE, key.secret_pkcs8_der())?;
            let (_, fields) = value(INTEGER, fields)?;
            let (kind, fields) = value(SEQUENCE, fields)?;
            let (identifier, _) = value(OBJECT_IDENTIFIER, kind)?;
            let (key, _) = value(OCTET_STRING, fields)?;
            if identifier == RSA { bits_of_pkcs1(key) } else { None }
        }
        _ => None,
    }
}

const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// Returns the size of a PKCS #1 key in bits. The first fields of the key are a version and the
/// modulus.
fn bits_of_pkcs1(der: &[u8]) -> Option<u64> {
    let (fields, _) = value(SEQUENCE, der)?;
    let (_, fields) = value(INTEGER, fields)?;
    let (modulus, _) = value(INTEGER, fields)?;
    let zeroes = modulus.iter().take_while(|&&byte| byte == 0).count();
    let first = modulus.get(zeroes)?;
    Some((modulus.len() - zeroes) as u64 * 8 - u64::from(first.leading_zeros()))
}

/// Returns the content of a value of type `tag` at the front of `der`, and the bytes after the
/// value.
fn value(tag: u8, der: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[found, length], rest) = der.split_first_chunk()?;
    let (length, rest) = match length {
        short @ 0..0x80 => (usize::from(short), rest),
        // The low bits are the number of the bytes that contain the length.
        long => {
            let (bytes, rest) = rest.split_at_checked(usize::from(long & 0x7f))?;
            let length =
                bytes.iter().try_fold(0_usize, |length, &byte| length.checked_mul(256)?.checked_add(byte.into()));
            (length?, rest)
        }
    };
    if found == tag { rest.split_at_checked(length) } else { None }
}

#[cfg(test)]
mod tests {
    use rustls::pki_types::PrivatePkcs1KeyDer;

    use super::*;

    #[test]
    fn rsa_key_size_is_the_size_of_the_modulus() {
        // The modulus has 300 bytes after a zero byte, and its first bit is set: 2,400 bits.
        let mut modulus = vec![INTEGER, 0x82, 1, 45, 0, 0x80];
        modulus.resize(modulus.len() + 299, 1);
        let mut der = vec![SEQUENCE, 0x82, 1, 52, INTEGER, 1, 0];
        der.extend(&modulus);
        assert_eq!(rsa_bits(&PrivatePkcs1KeyDer::from(der.clone()).into()), Some(2400));
        for length in 0..der.len() {
            assert_eq!(rsa_bits(&PrivatePkcs1KeyDer::from(der[..length].to_vec()).into()), None);
        }
    }

    #[test]
    fn message_lists_exactly_the_usable_key_sizes() {
        let usable: Vec<_> = (0..10_000).filter(|&bits| is_usable(bits)).map(|bits| bits.to_string()).collect();
        assert_eq!(RSA_BITS.replace(" or ", ", "), usable.join(", "));
    }
}
