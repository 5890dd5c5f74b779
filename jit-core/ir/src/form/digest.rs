//! SHA-256 (FIPS 180-4) that rustc can evaluate, for digests of types.
//!
//! A digest that anybody could make collide would let two types of one program share code, so it is one
//! that nobody can.

use super::{TypeDigest, TypeForm};

/// A text being digested. The pieces that a type's text is made of begin with what they are or have a
/// length, so that no two types have one text.
pub(super) struct Sha256 {
    state: [u32; 8],
    block: [u8; 64],
    length: usize,
}

impl Sha256 {
    pub(super) const fn new() -> Self {
        Sha256 {
            state: START,
            block: [0; 64],
            length: 0,
        }
    }

    pub(super) const fn byte(mut self, byte: u8) -> Self {
        self.block[self.length % 64] = byte;
        self.length += 1;
        if self.length.is_multiple_of(64) {
            self.state = compress(self.state, &self.block);
        }
        self
    }

    const fn bytes(mut self, bytes: &[u8]) -> Self {
        let mut i = 0;
        while i < bytes.len() {
            self = self.byte(bytes[i]);
            i += 1;
        }
        self
    }

    /// A number of eight bytes.
    pub(super) const fn number(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    /// A name with its length.
    pub(super) const fn name(self, name: &str) -> Self {
        self.number(name.len() as u64).bytes(name.as_bytes())
    }

    /// A type, as its digest.
    pub(super) const fn form(self, form: &TypeForm) -> Self {
        self.digest(form.digest)
    }

    /// A digest.
    pub(super) const fn digest(self, digest: TypeDigest) -> Self {
        self.bytes(&digest.0.to_be_bytes())
    }

    const fn finish(mut self) -> [u32; 8] {
        let bits = self.length as u64 * 8;
        self = self.byte(0x80);
        while self.length % 64 != 56 {
            self = self.byte(0);
        }
        self.number(bits).state
    }

    /// The first 16 bytes of the digest.
    pub(super) const fn leading_bytes(self) -> u128 {
        let [a, b, c, d, ..] = self.finish();
        (a as u128) << 96 | (b as u128) << 64 | (c as u128) << 32 | d as u128
    }
}

/// The compression function (FIPS 180-4, 6.2.2).
const fn compress(state: [u32; 8], block: &[u8; 64]) -> [u32; 8] {
    let mut words = [0u32; 64];
    let mut i = 0;
    while i < 64 {
        words[i] = match i < 16 {
            true => {
                let at = 4 * i;
                u32::from_be_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
            }
            false => {
                let (x, y) = (words[i - 15], words[i - 2]);
                let small0 = x.rotate_right(7) ^ x.rotate_right(18) ^ x >> 3;
                let small1 = y.rotate_right(17) ^ y.rotate_right(19) ^ y >> 10;
                let sum = words[i - 16].wrapping_add(small0);
                sum.wrapping_add(words[i - 7]).wrapping_add(small1)
            }
        };
        i += 1;
    }
    let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
    i = 0;
    while i < 64 {
        let big1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
        let choice = e & f ^ !e & g;
        let sum = h.wrapping_add(big1).wrapping_add(choice);
        let first = sum.wrapping_add(ROUNDS[i]).wrapping_add(words[i]);
        let big0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
        let majority = a & b ^ a & c ^ b & c;
        let second = big0.wrapping_add(majority);
        (h, g, f, e) = (g, f, e, d.wrapping_add(first));
        (d, c, b, a) = (c, b, a, first.wrapping_add(second));
        i += 1;
    }
    let end = [a, b, c, d, e, f, g, h];
    let mut sum = state;
    i = 0;
    while i < 8 {
        sum[i] = sum[i].wrapping_add(end[i]);
        i += 1;
    }
    sum
}

/// Fractions of the square roots of the first 8 primes (FIPS 180-4, 5.3.3).
const START: [u32; 8] = [
    0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
];

/// Fractions of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2).
const ROUNDS: [u32; 64] = [
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> String {
        let words = Sha256::new().bytes(text.as_bytes()).finish();
        words.map(|word| format!("{word:08x}")).concat()
    }

    /// The examples of FIPS 180-2, appendix B, and the empty text.
    #[test]
    fn digests_are_those_of_the_standard() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(hex(""), empty);
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(hex("abc"), abc);
        let two_blocks = "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
        let text = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
        assert_eq!(hex(text), two_blocks);
    }
}
